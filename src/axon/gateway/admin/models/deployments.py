"""Routes of /v1/admin/deployments: what is to run under a name. Knows no worker."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request

from axon.domain.registry.deployment import Deployment
from axon.domain.registry.scaling import Scaling
from axon.domain.registry.version import version_id
from axon.gateway.admin.bodies import AdminWire, actor_of, admin_of, note, read
from axon.gateway.admin.models.registry import Revision, asked_revision, needed_revision, page, removed
from axon.gateway.admin.models.scaling import ScalingBody
from axon.gateway.http.body import Many
from axon.gateway.http.paging import DEFAULT_LIMIT
from axon.gateway.http.schema import body_of_kind
from axon.registry.facts import facts_of
from axon.registry.rules import deployment_of

router = APIRouter(tags=["admin"], prefix="/v1/admin/deployments")

Fallbacks = Annotated[Many[str], Field(max_length=8)]


class NewDeployment(AdminWire):
    """Body of POST /v1/admin/deployments."""

    id: str
    """The deployment's name, by which clients ask for it: 1 to 64 letters, digits, dots, dashes or underscores."""
    model: str
    """Name of its model."""
    version: str
    """The version that sessions begin on: its label or its id."""
    min_replicas: int = 1
    """Workers that serve it at least; 0 lets it go cold."""
    max_replicas: int = 1
    """Workers that serve it at most."""
    scaling: ScalingBody = Field(default_factory=ScalingBody)
    """What its autoscaler aims at and may spend, and minimums by the clock."""
    pool: str = ""
    """Pool of workers that runs it; empty for the shared one."""
    memory_bytes: int = 0
    """Memory of one replica; 0 for what it needs."""
    devices: int = 0
    """GPUs of one replica; 0 for the CPU."""
    idle_s: float = 0.0
    """Seconds without a request after which it may go cold; 0 for never."""
    hot: bool = False
    """Whether it never goes cold: at least one worker runs, whatever ``min_replicas`` and ``idle_s`` say."""
    cold_patience_s: float = 300.0
    """Seconds that a turn may wait for a first worker to start, beyond the time that a turn may take."""
    patience_s: float = 60.0
    """Seconds for which a version may have no worker before its sessions are moved to the stable version."""
    num_lanes: int = 32
    """Lanes (queues) of each tier and version, 1 to 96; it cannot be changed."""
    fallbacks: Fallbacks = Field(default_factory=list)
    """Deployments that answer in its place while it is unavailable or full, in this order."""


class DeploymentChange(AdminWire):
    """Body of PATCH /v1/admin/deployments/{id}; fields that it does not have stay as they are."""

    revision: Revision | None = None
    """The revision of the deployment that the change was made from; or the header ``If-Match``."""
    min_replicas: int | None = None
    max_replicas: int | None = None
    scaling: ScalingBody | None = None
    """Fields that it does not have stay as they are; its ``floors`` replace all that there were."""
    pool: str | None = None
    memory_bytes: int | None = None
    devices: int | None = None
    idle_s: float | None = None
    hot: bool | None = None
    cold_patience_s: float | None = None
    patience_s: float | None = None
    fallbacks: Fallbacks | None = None


@router.get("", summary="List deployments")
async def index(request: Request, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "asc") -> dict[str, Any]:
    """Lists the registry's deployments page by page, by name."""
    found = await admin_of(request).catalog.snapshot()
    return page(found.deployments.values(), after=after, limit=limit, order=order)


@router.post("", openapi_extra=body_of_kind(NewDeployment), summary="Create a deployment")
async def create(request: Request) -> dict[str, Any]:
    """Creates a deployment of a registered version."""
    ask = await read(NewDeployment, request)
    said = ask.model_dump(exclude={"id", "version", "fallbacks", "scaling"})
    scaling = ask.scaling.over(Scaling())
    deployment = Deployment(name=ask.id, fallbacks=tuple(ask.fallbacks), scaling=scaling, created=0.0, **said)
    version = ask.version if "@" in ask.version else version_id(ask.model, ask.version)
    made = await admin_of(request).catalog.create_deployment(deployment, version, actor=actor_of(request))
    note(request, "admin.deployment_created", deployment=made.name, version=version)
    return facts_of(made)


@router.get("/{deployment_id}", summary="Retrieve a deployment")
async def show(request: Request, deployment_id: str) -> dict[str, Any]:
    """Returns a deployment with its versions and its rollout."""
    return facts_of(deployment_of(await admin_of(request).catalog.snapshot(), deployment_id))


@router.patch("/{deployment_id}", openapi_extra=body_of_kind(DeploymentChange), summary="Change a deployment")
async def change(request: Request, deployment_id: str) -> dict[str, Any]:
    """Changes a deployment's settings. 409 ``revision_mismatch`` if it has changed since the named revision."""
    ask = await read(DeploymentChange, request)
    said: dict[str, Any] = ask.model_dump(exclude={"revision", "scaling"}, exclude_none=True)
    if ask.fallbacks is not None:
        said["fallbacks"] = tuple(ask.fallbacks)
    scaling = ask.scaling or ScalingBody()
    new = await admin_of(request).catalog.change_deployment(
        deployment_id,
        lambda old: replace(old, scaling=scaling.over(old.scaling), **said),
        revision=needed_revision(request, ask.revision),
        actor=actor_of(request),
    )
    named = ask.model_dump(exclude={"revision"}, exclude_none=True)
    note(request, "admin.deployment_changed", deployment=new.name, changes=named)
    return facts_of(new)


@router.delete("/{deployment_id}", summary="Remove a deployment")
async def remove(request: Request, deployment_id: str) -> dict[str, Any]:
    """Removes a deployment that no alias or other deployment leads to and no session is pinned to."""
    revision = asked_revision(request)
    await admin_of(request).catalog.remove_deployment(deployment_id, revision=revision, actor=actor_of(request))
    note(request, "admin.deployment_removed", deployment=deployment_id)
    return removed(deployment_id, "deployment")

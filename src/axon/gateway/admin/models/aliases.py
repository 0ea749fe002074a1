"""Routes of /v1/admin/aliases: other names for deployments. Knows no request that uses one."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request

from axon.gateway.admin.bodies import AdminWire, actor_of, admin_of, note, read
from axon.gateway.admin.models.registry import Revision, asked_revision, needed_revision, page, removed
from axon.gateway.http.paging import DEFAULT_LIMIT
from axon.gateway.http.schema import body_of_kind
from axon.registry.facts import facts_of
from axon.registry.rules import alias_of

router = APIRouter(tags=["admin"], prefix="/v1/admin/aliases")


class NewAlias(AdminWire):
    """Body of POST /v1/admin/aliases."""

    id: str
    """The alias: 1 to 64 letters, digits, dots, dashes or underscores. No deployment may have this name."""
    deployment: str
    """Name of the deployment that it stands for."""


class AliasChange(AdminWire):
    """Body of PATCH /v1/admin/aliases/{id}."""

    revision: Revision | None = None
    """The revision of the alias that the change was made from; or the header ``If-Match``."""
    deployment: str
    """Name of the deployment that it stands for from now on."""


@router.get("", summary="List aliases")
async def index(request: Request, after: str = "", limit: str = DEFAULT_LIMIT, order: str = "asc") -> dict[str, Any]:
    """Lists the registry's aliases page by page, by name."""
    found = await admin_of(request).catalog.snapshot()
    return page(found.aliases.values(), after=after, limit=limit, order=order)


@router.post("", openapi_extra=body_of_kind(NewAlias), summary="Create an alias")
async def create(request: Request) -> dict[str, Any]:
    """Creates an alias for a deployment."""
    ask = await read(NewAlias, request)
    made = await admin_of(request).catalog.add_alias(ask.id, ask.deployment, actor=actor_of(request))
    note(request, "admin.alias_created", alias=made.name, deployment=made.deployment)
    return facts_of(made)


@router.get("/{alias_id}", summary="Retrieve an alias")
async def show(request: Request, alias_id: str) -> dict[str, Any]:
    """Returns an alias."""
    return facts_of(alias_of(await admin_of(request).catalog.snapshot(), alias_id))


@router.patch("/{alias_id}", openapi_extra=body_of_kind(AliasChange), summary="Switch an alias")
async def change(request: Request, alias_id: str) -> dict[str, Any]:
    """Switches an alias to another deployment, at once. 409 ``revision_mismatch`` if it has changed since the named
    revision."""
    ask = await read(AliasChange, request)
    revision = needed_revision(request, ask.revision)
    new = await admin_of(request).catalog.set_alias(
        alias_id, ask.deployment, revision=revision, actor=actor_of(request)
    )
    note(request, "admin.alias_switched", alias=new.name, deployment=new.deployment)
    return facts_of(new)


@router.delete("/{alias_id}", summary="Remove an alias")
async def remove(request: Request, alias_id: str) -> dict[str, Any]:
    """Removes an alias; its deployment stays."""
    revision = asked_revision(request)
    await admin_of(request).catalog.remove_alias(alias_id, revision=revision, actor=actor_of(request))
    note(request, "admin.alias_removed", alias=alias_id)
    return removed(alias_id, "alias")

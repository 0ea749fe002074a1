"""Routes of /v1/admin/deployments/{id}/rollout: a deployment's rollout and its steps by hand. Knows no comparison."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request

from axon.domain.registry import steps
from axon.domain.registry.deployment import Deployment
from axon.domain.registry.golden import MOST_CHARACTERS, MOST_TOKENS, Golden
from axon.domain.registry.rollout import STEPS, Rollout
from axon.domain.registry.tolerance import Tolerance
from axon.domain.registry.version import version_id
from axon.domain.tenants.tenant import check_no_key
from axon.gateway.admin.bodies import AdminWire, Name, actor_of, admin_of, note, read
from axon.gateway.admin.models.registry import Revision, asked_revision
from axon.gateway.http.body import Many
from axon.gateway.http.schema import body_of_kind
from axon.registry.rollout_facts import figure_facts, rollout_facts, rollout_of, shares_of
from axon.registry.rules import deployment_of

router = APIRouter(tags=["admin"], prefix="/v1/admin/deployments/{deployment_id}/rollout")

Text = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]


class GoldenBody(AdminWire):
    """A prompt with its expected answer, asked at temperature 0."""

    prompt: Text
    expected: Text
    """Text that the answer must contain."""
    exactly: bool = False
    """Whether the answer must be ``expected`` and nothing else."""
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS)] = 64


class ToleranceBody(AdminWire):
    """How much worse than the old version the new one may be."""

    min_samples: int = 200
    """Turns that each version must have before the comparison can abort."""
    slower: float = 1.25
    """Factor by which the time to the first token and the time between tokens may be longer."""
    odds: float = 1.5
    """Factor by which the odds of an error, a refusal and a mute turn may be larger."""
    excess: float = 0.01
    """Smallest difference of the rates of errors, refusals or mute turns that aborts."""
    mute_s: float = 30.0
    """Seconds after which a turn without a first token counts as mute."""
    false_aborts: float = 0.005
    """Largest probability that an equally good version is ever aborted."""


class NewRollout(AdminWire):
    """Body of POST /v1/admin/deployments/{id}/rollout."""

    version: str
    """The new version: its label or its id. It joins the deployment if it is not in it yet."""
    steps: Annotated[Many[float], Field(min_length=1, max_length=100)] | None = None
    """Percentages of new sessions, one after the other; by default 1, 10, 50 and 100."""
    bake_s: float = 300.0
    """Seconds that each step lasts at least; 0 to step by hand."""
    golden: Annotated[Many[GoldenBody], Field(max_length=50)] = Field(default_factory=list)
    """Prompts that the version must answer as expected before a session begins on it."""
    tolerance: ToleranceBody = Field(default_factory=ToleranceBody)
    revision: Revision | None = None
    """The revision of the deployment that the rollout is meant for; or the header ``If-Match``."""


class RolloutStep(AdminWire):
    """Body of the steps by hand; it may be empty."""

    reason: Name = ""
    """Why, for whoever looks at the rollout later."""
    revision: Revision | None = None
    """The revision of the deployment that the step is meant for; or the header ``If-Match``."""


@router.get("", summary="Retrieve a deployment's rollout")
async def show(request: Request, deployment_id: str) -> dict[str, Any]:
    """Returns the present or the last rollout of a deployment."""
    return rollout_facts(deployment_of(await admin_of(request).catalog.snapshot(), deployment_id))


@router.get("/figures", summary="Compare the versions of a rollout")
async def figures(request: Request, deployment_id: str) -> dict[str, Any]:
    """Returns what the gateways have counted of the present or last rollout since it began, for its old and its new
    version: turns, errors, refusals, mute turns, and the median seconds to the first token and between tokens of
    sessions' first turns. A gateway's counts are kept for a minute after its last news."""
    admin = admin_of(request)
    rollout = rollout_of(deployment_of(await admin.catalog.snapshot(), deployment_id))
    found = await admin.observations.all(rollout.id)
    return figure_facts(rollout, found)


@router.post("", openapi_extra=body_of_kind(NewRollout), summary="Start a rollout")
async def start(request: Request, deployment_id: str) -> dict[str, Any]:
    """Starts a rollout. It waits until the version has a worker in every pool, and passes its golden prompts."""
    ask = await read(NewRollout, request)
    catalog = admin_of(request).catalog
    model = deployment_of(await catalog.snapshot(), deployment_id).model
    version = ask.version if "@" in ask.version else version_id(model, ask.version)
    planned = Rollout(
        id="",
        old="",
        new=version,
        steps=STEPS if ask.steps is None else shares_of(ask.steps),
        bake_s=ask.bake_s,
        began=0.0,
        golden=tuple(Golden(**each.model_dump()) for each in ask.golden),
        tolerance=Tolerance(**ask.tolerance.model_dump()),
    )
    revision = asked_revision(request, ask.revision)
    made = await catalog.start_rollout(deployment_id, planned, revision=revision, actor=actor_of(request))
    note(request, "admin.rollout_started", deployment=made.name, version=version)
    return rollout_facts(made)


@router.post("/pause", openapi_extra=body_of_kind(RolloutStep), summary="Pause a rollout")
async def pause(request: Request, deployment_id: str) -> dict[str, Any]:
    """Keeps the present share. The comparison goes on, and can still abort."""
    return await _stepped(request, deployment_id, "admin.rollout_paused", lambda old, now, why: steps.pause(old))


@router.post("/resume", openapi_extra=body_of_kind(RolloutStep), summary="Resume a rollout")
async def resume(request: Request, deployment_id: str) -> dict[str, Any]:
    """Goes on after a pause; the bake time of the present step begins anew."""
    return await _stepped(
        request, deployment_id, "admin.rollout_resumed", lambda old, now, why: steps.resume(old, now=now)
    )


@router.post("/step", openapi_extra=body_of_kind(RolloutStep), summary="Step a rollout")
async def step(request: Request, deployment_id: str) -> dict[str, Any]:
    """Goes to the next share now, without waiting for the bake time."""
    return await _stepped(
        request, deployment_id, "admin.rollout_stepped", lambda old, now, why: steps.step(old, now=now)
    )


@router.post("/promote", openapi_extra=body_of_kind(RolloutStep), summary="Promote a rollout")
async def promote(request: Request, deployment_id: str) -> dict[str, Any]:
    """Makes the new version the stable one now, at whichever step the rollout is; the old version drains."""

    def act(old: Deployment, now: float, why: str) -> Deployment:
        return steps.promote(old, now=now, reason=why or "promoted by hand")

    return await _stepped(request, deployment_id, "admin.rollout_promoted", act)


@router.post("/rollback", openapi_extra=body_of_kind(RolloutStep), summary="Roll back")
async def rollback(request: Request, deployment_id: str) -> dict[str, Any]:
    """Begins new sessions on the old version again, within a second; sessions of the new version stay on it. A rollout
    that was promoted is rolled back as well, as long as its old version still runs."""

    def act(old: Deployment, now: float, why: str) -> Deployment:
        return steps.rollback(old, now=now, reason=why or "rolled back by hand")

    return await _stepped(request, deployment_id, "admin.rollout_rolled_back", act)


@router.post("/abort", openapi_extra=body_of_kind(RolloutStep), summary="Abort a rollout")
async def abort(request: Request, deployment_id: str) -> dict[str, Any]:
    """Takes the rollout back because the version is broken: its sessions are moved to the stable version, and told."""

    def act(old: Deployment, now: float, why: str) -> Deployment:
        return steps.abort(old, now=now, reason=why or "aborted by hand", moves=True)

    return await _stepped(request, deployment_id, "admin.rollout_aborted", act)


async def _stepped(
    request: Request, deployment_id: str, event: str, act: Callable[[Deployment, float, str], Deployment]
) -> dict[str, Any]:
    ask = await read(RolloutStep, request, empty=b"{}")
    check_no_key(ask.reason, param="reason")
    admin = admin_of(request)
    made = await admin.catalog.change_deployment(
        deployment_id,
        lambda old: act(old, admin.clock.now(), ask.reason),
        revision=asked_revision(request, ask.revision),
        actor=actor_of(request),
    )
    note(request, event, deployment=made.name, reason=ask.reason)
    return rollout_facts(made)

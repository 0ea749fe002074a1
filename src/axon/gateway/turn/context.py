"""The context of a route: the gateway's parts, the caller's identity, the model it names and its own turns."""

from dataclasses import dataclass

from starlette.requests import Request

from axon.admission.quota import Quota
from axon.dispatch.config import DispatchConfig
from axon.domain.job import Job
from axon.domain.served_version import ServedVersion
from axon.domain.turn import Turn
from axon.errors import NotFound
from axon.gateway.config import GatewayConfig
from axon.gateway.fleet import Fleet
from axon.gateway.http.auth import Identity
from axon.gateway.http.body import Bodies
from axon.gateway.turn.follow import Follower
from axon.gateway.turn.opening import Opening
from axon.gateway.turn.reader import Reader
from axon.runtime.clock import Clock
from axon.runtime.lifecycle import Lifecycle
from axon.sessions.config import SessionsConfig
from axon.sessions.prompt import Prompts
from axon.sessions.sessions import Sessions
from axon.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """The parts that routes share; ``bootstrap`` makes them and passes them in."""

    config: GatewayConfig
    sessions_config: SessionsConfig
    dispatch_config: DispatchConfig
    bodies: Bodies
    fleet: Fleet
    prompts: Prompts
    opening: Opening
    quota: Quota
    follower: Follower
    sessions: Sessions
    lifecycle: Lifecycle
    clock: Clock
    metrics: Metrics


def gateway_of(request: Request) -> Gateway:
    """Returns the gateway that received the request."""
    gateway: Gateway = request.app.state.gateway
    return gateway


def identity_of(request: Request) -> Identity:
    """Returns the caller's identity, which the middleware has put into the request's scope."""
    identity: Identity = request.scope["axon.identity"]
    return identity


def find_deployment(request: Request, model: str) -> ServedVersion:
    """Returns the deployment that ``model`` names; raises ``NotFound`` if there is none.

    A model that the tenant may not use gets the same error as an unknown one. ``Unavailable`` is raised until a worker
    that serves the model has been seen.
    """
    fleet = gateway_of(request).fleet
    available = fleet.name if identity_of(request).terms.allows(fleet.name) else ""
    if not available or model != available:
        raise NotFound(
            f"The model '{model}' does not exist. Available: {available or 'none'}.",
            code="model_not_found",
            param="model",
        )
    return fleet.deployment


async def find_turn(request: Request, turn_id: str) -> Turn | None:
    """Returns a turn of the caller's own tenant; None if it is another tenant's, is unknown or was erased."""
    return await gateway_of(request).sessions.lookup.find(turn_id, asker=identity_of(request).tenant)


def reader_of(request: Request, job: Job, found: Turn | None = None) -> Reader:
    """Returns the request's client as a reader of the job's stream; ``found`` is the turn if it existed before."""
    return Reader(job, identity_of(request).key_id, found)

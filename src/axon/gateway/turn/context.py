"""The context of a route: the gateway's parts, the caller's identity, the model it names and its own turns."""

from dataclasses import dataclass

from starlette.requests import Request

from axon.admission.quota import Quota
from axon.dispatch.config import DispatchConfig
from axon.domain.job import Job
from axon.domain.turn import Turn
from axon.gateway.config import GatewayConfig
from axon.gateway.http.auth import Identity
from axon.gateway.http.body import Bodies
from axon.gateway.http.scopes import check_names_version
from axon.gateway.http.tracing import RequestTraces, steps_of
from axon.gateway.offers.offers import Offers, Wanted
from axon.gateway.turn.follow import Follower
from axon.gateway.turn.observer import TurnObserving
from axon.gateway.turn.opening import Opening
from axon.gateway.turn.reader import Reader
from axon.runtime.clock import Clock
from axon.runtime.lifecycle import Lifecycle
from axon.sessions.config import SessionsConfig
from axon.sessions.grammars import Grammars
from axon.sessions.sessions import Sessions
from axon.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """The parts that routes share; ``bootstrap`` makes them and passes them in."""

    config: GatewayConfig
    sessions_config: SessionsConfig
    dispatch_config: DispatchConfig
    bodies: Bodies
    grammars: Grammars
    offers: Offers
    opening: Opening
    quota: Quota
    follower: Follower
    observer: TurnObserving
    sessions: Sessions
    lifecycle: Lifecycle
    clock: Clock
    metrics: Metrics
    traces: RequestTraces | None = None
    """None where nothing is traced."""


def gateway_of(request: Request) -> Gateway:
    """Returns the gateway that received the request."""
    gateway: Gateway = request.app.state.gateway
    return gateway


def identity_of(request: Request) -> Identity:
    """Returns the caller's identity, which the middleware has put into the request's scope."""
    identity: Identity = request.scope["axon.identity"]
    return identity


def find_model(request: Request, model: str, *, with_fallbacks: bool = False) -> Wanted:
    """Returns what ``model`` names; raises ``NotFound`` if there is nothing of this name that the tenant may use.

    ``with_fallbacks`` is for a turn, which a fallback may answer while the deployment itself has no version. Raises
    ``Forbidden`` if it names one version and the caller's key may not, whether or not there is such a version.
    """
    who, offers = identity_of(request), gateway_of(request).offers
    if offers.names_version(model, who.terms.allows):
        check_names_version(who.scopes)
    return offers.find(model, who.terms.allows, tenant=who.tenant, with_fallbacks=with_fallbacks)


async def find_turn(request: Request, turn_id: str) -> Turn | None:
    """Returns a turn of the caller's own tenant; None if it is another tenant's, is unknown or was erased."""
    return await gateway_of(request).sessions.lookup.find(turn_id, asker=identity_of(request).tenant)


def reader_of(request: Request, job: Job, found: Turn | None = None) -> Reader:
    """Returns the request's client as a reader of the job's stream; ``found`` is the turn if it existed before."""
    steps = steps_of(request.scope)
    if steps is None:
        return Reader(job, identity_of(request).key_id, found)
    traces = gateway_of(request).traces
    assert traces is not None, "a request that is traced has passed a gateway that traces"
    return Reader(job, identity_of(request).key_id, found, saw=traces.follows(steps, job))

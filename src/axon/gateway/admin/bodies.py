"""Shared by the routes under /v1/admin: request and response bodies, and the audit log of changes. Knows no route."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

import structlog
from pydantic import ConfigDict, Field
from starlette.requests import Request

from axon.domain.registry.adapter import Adapter
from axon.domain.tenants.storage import Stored
from axon.domain.tenants.tenant import Limits, Terms, Tier
from axon.errors import InvalidInput
from axon.gateway.admin.overviews import Overviews
from axon.gateway.http.body import Many, Wire
from axon.gateway.turn.body import read_body
from axon.gateway.turn.context import identity_of
from axon.ports.alerts import Alerts
from axon.ports.store import AuditStore
from axon.profiling.asking import Profiles
from axon.registry.catalog import Catalog
from axon.registry.drain_orders import DrainOrders
from axon.registry.fleet_report import FleetReports
from axon.registry.observations import Observations
from axon.runtime.clock import Clock
from axon.sessions.traced_turns import TracedTurns
from axon.telemetry.recent import RecentLines
from axon.tenants.keyring import Keyring
from axon.tenants.tenancy import Tenancy

if TYPE_CHECKING:
    from axon.gateway.admin.settings import SettingInEffect

FetchAdapter = Callable[[str, str, str, str], Awaitable[Adapter]]
_logger = structlog.get_logger("axon.admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """The parts that the admin routes use; ``bootstrap`` makes them and passes them in."""

    tenancy: Tenancy
    keyring: Keyring
    catalog: Catalog
    fleet: FleetReports
    overviews: Overviews
    profiles: Profiles
    lines: RecentLines
    """The last log lines of this process."""
    process: str
    """The name of this process."""
    alerts: Alerts | None
    """None where no Alertmanager is configured."""
    traced: TracedTurns
    observations: Observations
    """What the gateways have counted of rollouts."""
    drains: DrainOrders
    audit: AuditStore
    settings: Callable[[], Sequence["SettingInEffect"]]
    """The settings of this process, without secrets."""
    fetch_adapter: FetchAdapter
    """Fetches and checks the files of an adapter, by model, name, source and tenant."""
    clock: Clock


def admin_of(request: Request) -> Admin:
    """Returns the admin parts of the application that received the request."""
    admin: Admin = request.app.state.admin
    return admin


def actor_of(request: Request) -> str:
    """Who made the request, as the audit trail names it: the id of the key, and the person who signed in by name."""
    who = identity_of(request)
    return f"{who.key_id} {who.user}".strip()


def note(request: Request, event: str, **facts: object) -> None:
    """Writes the event of a change to the audit log: the key and tenant that made it, and ``facts``, which must hold no
    secret."""
    who = identity_of(request)
    _logger.info(event, by_key=who.key_id, by_tenant=who.tenant, **facts)


class AdminWire(Wire):
    """Base of admin bodies. Unknown fields are refused, because a misspelt limit would silently not hold."""

    model_config = ConfigDict(extra="forbid")
    max_parts: ClassVar[int] = 10_000


class LimitsBody(AdminWire):
    """Limits to set. Null unsets a limit, so that the plan or the server's settings decide it; 0 means no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    concurrent: int | None = None
    queued: int | None = None
    tokens_per_day: int | None = None
    tokens_per_month: int | None = None
    stored_bytes: int | None = None
    stored_objects: int | None = None
    weight: float | None = None
    highest_tier: Literal["flex", "default", "priority"] | None = None
    models: Many[str] | None = None
    kv_share: float | None = None
    reserved: float | None = None
    pool: str | None = None

    def over(self, limits: Limits) -> Limits:
        """Returns ``limits`` with those changed that the body names."""
        said = {name: getattr(self, name) for name in self.model_fields_set}
        if "highest_tier" in said and self.highest_tier is not None:
            said["highest_tier"] = Tier(self.highest_tier)
        if "models" in said and self.models is not None:
            said["models"] = tuple(self.models)
        return replace(limits, **said)


W = TypeVar("W", bound=AdminWire)


async def read(kind: type[W], request: Request, *, empty: bytes = b"") -> W:
    """Returns the request's parsed body; an empty body is read as ``empty``."""
    try:
        _, ask = await read_body(request, kind, empty=empty)
    except InvalidInput as error:
        parent, _, name = (error.param or "").rpartition(".")
        if parent != "limits" or name in LimitsBody.model_fields:
            raise
        known = ", ".join(LimitsBody.model_fields)
        raise InvalidInput(f"'{name}' is no limit. There are: {known}.", code=error.code, param=error.param) from None
    return ask


Name = Annotated[str, Field(max_length=256)]


def terms_body(terms: Terms) -> dict[str, Any]:
    """Returns the JSON of the limits that hold for a tenant in the end."""
    return {name: value for name, value in asdict(terms).items() if name != "place"}


def stored_body(stored: Stored) -> dict[str, int]:
    """Returns the JSON of how much a tenant stores."""
    return {"bytes": stored.num_bytes, "objects": stored.num_objects}

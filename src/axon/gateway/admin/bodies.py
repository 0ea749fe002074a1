"""Shared by the routes under /v1/admin: request and response bodies, and the audit log of changes. Knows no route."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import structlog
from pydantic import ConfigDict, Field
from starlette.requests import Request

from axon.domain.key import Key
from axon.domain.storage import Stored
from axon.domain.tenant import Limits, Plan, Tenant, Terms, Tier
from axon.domain.usage_sum import UsageSum
from axon.errors import InvalidInput
from axon.gateway.http.body import Many, Wire
from axon.gateway.turn.context import gateway_of, identity_of
from axon.registry.catalog import Catalog
from axon.registry.fleet_report import FleetReports
from axon.runtime.clock import Clock
from axon.tenants.keyring import Keyring
from axon.tenants.tenancy import Tenancy

_logger = structlog.get_logger("axon.admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """The parts that the admin routes use; ``bootstrap`` makes them and passes them in."""

    tenancy: Tenancy
    keyring: Keyring
    catalog: Catalog
    fleet: FleetReports
    clock: Clock


def admin_of(request: Request) -> Admin:
    """Returns the admin parts of the application that received the request."""
    admin: Admin = request.app.state.admin
    return admin


def note(request: Request, event: str, **facts: object) -> None:
    """Writes a change to the audit log: the key and tenant that made it, and ``facts``, which must hold no secret."""
    who = identity_of(request)
    _logger.info(f"admin.{event}", by_key=who.key_id, by_tenant=who.tenant, **facts)


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
    gateway = gateway_of(request)
    body = await gateway.bodies.read(request) or empty
    try:
        return await gateway.bodies.parse(kind, body, {})
    except InvalidInput as error:
        parent, _, name = (error.param or "").rpartition(".")
        if parent != "limits" or name in LimitsBody.model_fields:
            raise
        known = ", ".join(LimitsBody.model_fields)
        raise InvalidInput(f"'{name}' is no limit. There are: {known}.", code=error.code, param=error.param) from None


Name = Annotated[str, Field(max_length=256)]


def tenant_body(tenant: Tenant) -> dict[str, Any]:
    """Returns the JSON of a tenant."""
    return {
        "id": tenant.id,
        "object": "tenant",
        "name": tenant.name,
        "status": "active" if tenant.suspended_at is None else "suspended",
        "plan": tenant.plan,
        "limits": limits_body(tenant.limits),
        "place": tenant.place,
        "created_at": int(tenant.created_at),
        "suspended_at": _time(tenant.suspended_at),
    }


def plan_body(plan: Plan) -> dict[str, Any]:
    """Returns the JSON of a plan."""
    return {"id": plan.name, "object": "plan", "limits": limits_body(plan.limits)}


def key_body(key: Key, now: float) -> dict[str, Any]:
    """Returns the JSON of a key, without its secret."""
    return {
        "id": key.id,
        "object": "api_key",
        "tenant": key.tenant,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "status": key.state(now),
        "created_at": int(key.created_at),
        "expires_at": _time(key.expires_at),
        "revoked_at": _time(key.revoked_at),
        "last_used_at": _time(key.last_used_at),
        "previous": key.previous or None,
    }


def usage_body(spent: UsageSum) -> dict[str, Any]:
    """Returns the JSON of a tenant's usage, of one day or model or of all."""
    return {
        "object": "usage",
        "tenant": spent.tenant,
        "day": spent.day or None,
        "model": spent.model or None,
        "turns": spent.num_turns,
        "prompt_tokens": spent.usage.prompt_tokens,
        "cached_tokens": spent.usage.cached_tokens,
        "output_tokens": spent.usage.output_tokens,
        "total_tokens": spent.usage.total_tokens,
        "costs": [amount.shown() for amount in spent.costs],
        "replicas": spent.replicas.shown(),
    }


def limits_body(limits: Limits) -> dict[str, Any]:
    """Returns the JSON of the limits that are set."""
    values = {each.name: getattr(limits, each.name) for each in fields(limits)}
    return {name: value for name, value in values.items() if value is not None}


def terms_body(terms: Terms) -> dict[str, Any]:
    """Returns the JSON of the limits that hold for a tenant in the end."""
    return {name: value for name, value in asdict(terms).items() if name != "place"}


def stored_body(stored: Stored) -> dict[str, int]:
    """Returns the JSON of how much a tenant stores."""
    return {"bytes": stored.num_bytes, "objects": stored.num_objects}


def _time(at: float | None) -> int | None:
    """Returns a time in whole seconds, as OpenAI's API has them."""
    return None if at is None else int(at)

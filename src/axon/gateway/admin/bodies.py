"""What the routes under /v1/admin share: bodies in and out, and a line in the log for each change."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import structlog
from pydantic import ConfigDict, Field
from starlette.requests import Request

from axon.domain.key import Key
from axon.domain.storage import Stored
from axon.domain.tenant import Limits, Plan, Tenant, Terms, Tier
from axon.domain.usage import UsageSum
from axon.errors import InvalidInput
from axon.gateway.http.body import Many, Wire, read_body
from axon.gateway.turn.context import gateway_of, identity_of
from axon.runtime.clock import Clock
from axon.tenants.keyring import Keyring
from axon.tenants.tenancy import Tenancy

_logger = structlog.get_logger("axon.admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """What the admin routes may use, made by bootstrap and passed in."""

    tenancy: Tenancy
    keyring: Keyring
    clock: Clock


def admin_of(request: Request) -> Admin:
    admin: Admin = request.app.state.admin
    return admin


def note(request: Request, event: str, **facts: object) -> None:
    """Who has changed what; never a secret."""
    who = identity_of(request)
    _logger.info(f"admin.{event}", by_key=who.key_id, by_tenant=who.tenant, **facts)


class AdminWire(Wire):
    """A misspelt limit would be a limit that does not hold: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")
    max_parts: ClassVar[int] = 10_000


class LimitsBody(AdminWire):
    """Limits that are set; null leaves one to the plan, or to the server's settings. 0 sets no limit."""

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
        """The limits with those changed that the body names."""
        said = {name: getattr(self, name) for name in self.model_fields_set}
        if "highest_tier" in said and self.highest_tier is not None:
            said["highest_tier"] = Tier(self.highest_tier)
        if "models" in said and self.models is not None:
            said["models"] = tuple(self.models)
        return replace(limits, **said)


W = TypeVar("W", bound=AdminWire)


async def read(kind: type[W], request: Request, *, empty: bytes = b"") -> W:
    """The request's body; ``empty`` stands for none."""
    gateway = gateway_of(request)
    body = await read_body(request, gateway.config) or empty
    try:
        return await gateway.bodies.parse(kind, body, {})
    except InvalidInput as error:
        place, _, name = (error.param or "").rpartition(".")
        if place != "limits" or name in LimitsBody.model_fields:
            raise
        known = ", ".join(LimitsBody.model_fields)
        raise InvalidInput(f"'{name}' is no limit. There are: {known}.", code=error.code, param=error.param) from None


Name = Annotated[str, Field(max_length=256)]


def tenant_body(tenant: Tenant) -> dict[str, Any]:
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
    return {"id": plan.name, "object": "plan", "limits": limits_body(plan.limits)}


def key_body(key: Key, now: float) -> dict[str, Any]:
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
    return {
        "object": "usage",
        "tenant": spent.tenant,
        "day": spent.day or None,
        "turns": spent.num_turns,
        "prompt_tokens": spent.usage.prompt_tokens,
        "cached_tokens": spent.usage.cached_tokens,
        "output_tokens": spent.usage.output_tokens,
        "total_tokens": spent.usage.total_tokens,
    }


def limits_body(limits: Limits) -> dict[str, Any]:
    """Those that are set."""
    said = {each.name: getattr(limits, each.name) for each in fields(limits)}
    return {name: value for name, value in said.items() if value is not None}


def terms_body(terms: Terms) -> dict[str, Any]:
    return {name: value for name, value in asdict(terms).items() if name != "place"}


def stored_body(stored: Stored) -> dict[str, int]:
    """How much is kept for a tenant."""
    return {"bytes": stored.num_bytes, "objects": stored.num_objects}


def _time(at: float | None) -> int | None:
    return None if at is None else int(at)

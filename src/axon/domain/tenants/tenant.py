"""Tenants, plans and their limits. Values and pure functions: the store keeps tenants and plans.

server's defaults  ◄ overridden by ─  plan's limits  ◄ overridden by ─  tenant's limits   ═►  Terms, every limit set
"""

import re
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from axon.domain.names import ID_RULE, KEY_RULE, holds_key, is_id
from axon.errors import InvalidInput

DEFAULT_PLAN = "default"
"""The plan of a tenant that names none; until it is made, it sets nothing and the server's settings hold."""


_POOL = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")
NAME_RULE = "text that can be printed, at most 256 characters"
_MAX_MODELS = 100
_MAX_NAME = 256
_MOST = float(1 << 53)
"""Largest integer that every JSON reader represents exactly."""
_RANGES = {
    "requests_per_minute": (0, _MOST),
    "tokens_per_minute": (0, _MOST),
    "concurrent": (0, _MOST),
    "queued": (0, _MOST),
    "tokens_per_day": (0, _MOST),
    "tokens_per_month": (0, _MOST),
    "stored_bytes": (0, _MOST),
    "stored_objects": (0, _MOST),
    "weight": (0.001, 1000),
    "reserved": (0, 1),
}


class Tier(StrEnum):
    """Urgency of a request (``service_tier``). It changes the rate of the tokens, not only the time in the queue."""

    FLEX = "flex"
    DEFAULT = "default"
    PRIORITY = "priority"

    @property
    def priority(self) -> int:
        """The number that jobs and engines use; the higher, the sooner."""
        return {Tier.FLEX: -1, Tier.DEFAULT: 0, Tier.PRIORITY: 1}[self]

    @classmethod
    def of(cls, priority: int) -> "Tier":
        """The tier of a job's priority."""
        return cls.PRIORITY if priority > 0 else cls.FLEX if priority < 0 else cls.DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a plan or a tenant. None falls back: from the tenant to its plan, then to the server's settings."""

    requests_per_minute: float | None = None
    """0 means unlimited, here and below unless stated otherwise."""
    tokens_per_minute: float | None = None
    """Tokens of prompts and answers."""
    concurrent: int | None = None
    """Turns that may run or wait at once."""
    queued: int | None = None
    """The number of those that may wait for a worker."""
    tokens_per_day: int | None = None
    tokens_per_month: int | None = None
    stored_bytes: int | None = None
    """Bytes stored for it: conversations, their items, and turns with ``store: true``."""
    stored_objects: int | None = None
    """Number of stored conversations, items and turns."""
    weight: float | None = None
    """Weight in fair sharing of a busy fleet, 0.001 to 1000."""
    highest_tier: Tier | None = None
    models: tuple[str, ...] | None = None
    """Names of the models that it may use; an empty tuple means all."""
    kv_share: float | None = None
    """Fraction of an engine's KV blocks that its running turns may hold, more than 0 and at most 1."""
    reserved: float | None = None
    """Fraction of every shared worker's slots that is reserved for it, 0 to 1."""
    pool: str | None = None
    """Name of the pool of workers that serves it; empty for the shared workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Limits under a name, for many tenants."""

    name: str
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A tenant as it is stored."""

    id: str
    name: str = ""
    """Display name."""
    plan: str = DEFAULT_PLAN
    limits: Limits = field(default_factory=Limits)
    """Limits that override its plan's."""
    place: int | None = None
    """Number of the tenant, from 0: tenants with consecutive numbers use different lanes. None: a hash of its id is
    used instead."""
    created_at: float = 0.0
    suspended_at: float | None = None
    """Unix time since which its keys are refused; its data is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The limits that apply to a tenant's request, every one set. 0 means unlimited."""

    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0
    concurrent: int = 0
    queued: int = 0
    tokens_per_day: int = 0
    tokens_per_month: int = 0
    stored_bytes: int = 0
    stored_objects: int = 0
    weight: float = 1.0
    highest_tier: Tier = Tier.PRIORITY
    models: tuple[str, ...] = ()
    kv_share: float = 1.0
    reserved: float = 0.0
    pool: str = ""
    place: int | None = None

    def allows(self, model: str) -> bool:
        """Whether the tenant may use this model."""
        return not self.models or model in self.models

    def tier(self, asked: Tier) -> Tier:
        """The tier that a request gets: the requested one, at most the tenant's highest."""
        return asked if asked.priority <= self.highest_tier.priority else self.highest_tier


def check_id(name: str, *, param: str = "id") -> None:
    """Raises ``InvalidInput`` for an id that no tenant, plan or record of the registry may have."""
    check_no_key(name, param=param)
    if not is_id(name):
        raise InvalidInput(f"'{param}' must have {ID_RULE}.", param=param)


def check_name(name: str) -> None:
    """Raises ``InvalidInput`` for a display name that is too long, cannot be printed or has a key in it."""
    check_no_key(name, param="name")
    if len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidInput(f"'name' must be {NAME_RULE}.", param="name")


def check_no_key(text: str, *, param: str) -> None:
    """Raises ``InvalidInput``, which does not repeat the text, if an API key is in it: whoever took the wrong field for
    a key must not find it in lists and in the audit trail, from which nothing is removed."""
    if holds_key(text):
        raise InvalidInput(f"'{param}': {KEY_RULE}.", param=param)


def is_pool(name: str) -> bool:
    """Whether the name is valid for a pool; the empty name means the shared workers."""
    return not name or _POOL.fullmatch(name) is not None


def check_limits(limits: Limits) -> None:
    """Raises ``InvalidInput`` with the name of the first invalid limit."""
    if wrong := wrong_limit(limits):
        name, what = wrong
        raise InvalidInput(f"The limit '{name}' must be {what}.", param=f"limits.{name}")


def wrong_limit(limits: Limits) -> tuple[str, str] | None:
    """The first invalid limit, and a description of its valid values."""
    for name, (low, high) in _RANGES.items():
        value = getattr(limits, name)
        if value is not None and not low <= value <= high:
            return name, f"{_range(low, high, value)}, not {value:g}"
    for name in ("requests_per_minute", "tokens_per_minute"):
        if 0 < (getattr(limits, name) or 0) < 1:  # such a bucket never holds a whole request or token
            return name, "0 or at least 1"
    if limits.kv_share is not None and not 0 < limits.kv_share <= 1:
        return "kv_share", f"more than 0 and at most 1, not {limits.kv_share:g}"
    for word, values in (("models", limits.models or ()), ("pool", (limits.pool or "",))):
        if any(holds_key(value) for value in values):
            return word, "without API keys: lists and the audit trail show it"
    for model in limits.models or ():
        if not (0 < len(model) <= 256 and model.isprintable()):
            return "models", "names of models"
    if len(limits.models or ()) > _MAX_MODELS:
        return "models", f"at most {_MAX_MODELS} names"
    if not is_pool(limits.pool or ""):
        return "pool", "1 to 40 small letters, digits, dashes or underscores inside, or empty"
    return None


def _range(low: float, high: float, value: float) -> str:
    """A range in words. The upper end of an unlimited range is mentioned only if the value exceeds it."""
    if high == _MOST:
        return f"at most {_MOST:.0f}" if value > high else f"{low:g} or more"
    return f"from {low:g} to {high:g}"


def terms_of(tenant: Tenant, plan: Plan | None, defaults: Terms) -> Terms:
    """Resolves every limit: the tenant's own, else its plan's, else the server's default."""
    decided: dict[str, Any] = {"place": tenant.place}
    for each in fields(Limits):
        values = (getattr(tenant.limits, each.name), getattr(plan.limits, each.name) if plan else None)
        decided[each.name] = next((value for value in values if value is not None), getattr(defaults, each.name))
    return Terms(**decided)

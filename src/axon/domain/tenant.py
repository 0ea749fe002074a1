"""Who is billed and isolated, and what it is entitled to. Pure: the store keeps tenants and plans, nobody else asks.

plan's limits  ◄─ changed by ─  tenant's own limits   ═►  Terms: what holds for a request, nothing left open
"""

import re
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from axon.errors import InvalidInput

DEFAULT_PLAN = "default"
"""The plan of a tenant that names none; until it is made, it sets nothing and the server's settings hold."""


_POOL = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
ID_RULE = "1 to 64 letters, digits, dots, dashes or underscores, and begin with no dot or dash"
NAME_RULE = "text that can be printed, at most 256 characters"
_MAX_MODELS = 100
_MAX_NAME = 256
_MOST = float(1 << 53)
"""What every reader of JSON can count to."""
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
    """How urgent a request is (``service_tier``): changes the rate of its tokens, not only its place in the queue."""

    FLEX = "flex"
    DEFAULT = "default"
    PRIORITY = "priority"

    @property
    def priority(self) -> int:
        """As jobs and engines have it: the higher, the sooner."""
        return {Tier.FLEX: -1, Tier.DEFAULT: 0, Tier.PRIORITY: 1}[self]

    @classmethod
    def of(cls, priority: int) -> "Tier":
        """The tier of a job's priority."""
        return cls.PRIORITY if priority > 0 else cls.FLEX if priority < 0 else cls.DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a plan or a tenant sets; None leaves it to the one below: tenant, then plan, then the server's settings."""

    requests_per_minute: float | None = None
    """0 sets no limit, here and in all that follow unless they say otherwise."""
    tokens_per_minute: float | None = None
    """Prompt and answer."""
    concurrent: int | None = None
    """Turns that may run or wait at once."""
    queued: int | None = None
    """Of these, the turns that may wait for a worker."""
    tokens_per_day: int | None = None
    tokens_per_month: int | None = None
    stored_bytes: int | None = None
    """Bytes that are kept for it: conversations, their items, and turns that it asked to store."""
    stored_objects: int | None = None
    """The number of these."""
    weight: float | None = None
    """Its share of a busy fleet, measured against the others': 0.001 to 1000."""
    highest_tier: Tier | None = None
    models: tuple[str, ...] | None = None
    """Names of the models it may ask; an empty one means all."""
    kv_share: float | None = None
    """How much of an engine's blocks its running turns may hold, more than 0 and at most 1."""
    reserved: float | None = None
    """Share of every shared worker's slots that is its own whenever it asks, 0 to 1."""
    pool: str | None = None
    """Workers that serve it alone, by the name they were started with; empty: those that everybody shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Limits under a name, for many tenants."""

    name: str
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """What is stored of a tenant."""

    id: str
    name: str = ""
    """For people."""
    plan: str = DEFAULT_PLAN
    limits: Limits = field(default_factory=Limits)
    """What differs from its plan."""
    place: int | None = None
    """Counts the tenants from 0: neighbours by it share no lane. None: its lane goes by its id's hash."""
    created_at: float = 0.0
    suspended_at: float | None = None
    """From then on its keys open nothing; what it has is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for a tenant's request: every limit decided. 0 is no limit, as everywhere."""

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
        """Whether it may ask this model."""
        return not self.models or model in self.models

    def tier(self, asked: Tier) -> Tier:
        """What it gets of what it asks for: never more than its highest."""
        return asked if asked.priority <= self.highest_tier.priority else self.highest_tier


def check_id(name: str, *, param: str = "id") -> None:
    """Raises ``InvalidInput`` for what can name neither a tenant nor a plan."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"'{param}' must have {ID_RULE}.", param=param)


def check_name(name: str) -> None:
    """Raises ``InvalidInput`` for a name that no list could show."""
    if len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidInput(f"'name' must be {NAME_RULE}.", param="name")


def is_pool(name: str) -> bool:
    """Whether a pool may be called so; the empty name is that of the workers that everybody shares."""
    return not name or _POOL.fullmatch(name) is not None


def check_limits(limits: Limits) -> None:
    """Raises ``InvalidInput`` that names the first limit which makes no sense."""
    if wrong := wrong_limit(limits):
        name, what = wrong
        raise InvalidInput(f"The limit '{name}' must be {what}.", param=f"limits.{name}")


def wrong_limit(limits: Limits) -> tuple[str, str] | None:
    """The first limit that makes no sense, and what it must be."""
    for name, (low, high) in _RANGES.items():
        value = getattr(limits, name)
        if value is not None and not low <= value <= high:
            return name, f"{_range(low, high, value)}, not {value:g}"
    for name in ("requests_per_minute", "tokens_per_minute"):
        if 0 < (getattr(limits, name) or 0) < 1:  # a bucket that never holds a whole one
            return name, "0 or at least 1"
    if limits.kv_share is not None and not 0 < limits.kv_share <= 1:
        return "kv_share", f"more than 0 and at most 1, not {limits.kv_share:g}"
    for model in limits.models or ():
        if not (0 < len(model) <= 256 and model.isprintable()):
            return "models", "names of models"
    if len(limits.models or ()) > _MAX_MODELS:
        return "models", f"at most {_MAX_MODELS} names"
    if not is_pool(limits.pool or ""):
        return "pool", "1 to 40 small letters, digits, dashes or underscores inside, or empty"
    return None


def _range(low: float, high: float, value: float) -> str:
    """In words; where the upper end is only what can be counted, it is named to whoever is beyond it."""
    if high == _MOST:
        return f"at most {_MOST:.0f}" if value > high else f"{low:g} or more"
    return f"from {low:g} to {high:g}"


def terms_of(tenant: Tenant, plan: Plan | None, defaults: Terms) -> Terms:
    """The tenant's own word first, then its plan's, then the server's."""
    decided: dict[str, Any] = {"place": tenant.place}
    for each in fields(Limits):
        words = (getattr(tenant.limits, each.name), getattr(plan.limits, each.name) if plan else None)
        decided[each.name] = next((word for word in words if word is not None), getattr(defaults, each.name))
    return Terms(**decided)

"""Storage quota: a tenant's stored bytes and objects against its limits. Knows no table, no route and no rate.

The store measures what is stored, and this class caches the measurement for a second. It adds what this gateway has
written since and is writing now, so concurrent requests at one gateway cannot exceed the quota. Up to a second of what
other gateways wrote is not included.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from axon.domain.tenants.storage import Stored
from axon.domain.tenants.tenant import Terms
from axon.errors import DependencyDown, StorageFull
from axon.runtime.clock import Clock

Measure = Callable[[str], Awaitable[Stored]]
"""Measures what is stored for a tenant now."""

_FRESH_S = 1.0
"""A measurement is trusted for this long."""
_READ_S = 0.5
"""Longest that a request waits for a measurement; a store that is away must not delay turns."""
_AWAY_S = 5.0
"""After a measurement that failed, none is tried for this long."""
_MAX_TENANTS = 10_000

_logger = structlog.get_logger("axon.admission")


@dataclass(slots=True, eq=False)
class _Account:
    """One tenant's storage, as this gateway knows it."""

    measured: Stored = field(default_factory=Stored)
    since: Stored = field(default_factory=Stored)
    """Written by this gateway since the measurement began."""
    during: Stored = field(default_factory=Stored)
    """Written by this gateway while a measurement runs, which may or may not have seen it."""
    writing: Stored = field(default_factory=Stored)
    """Admitted and not yet written."""
    good_until: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def used(self) -> Stored:
        return self.measured + self.since + self.writing

    def wrote(self, more: Stored) -> None:
        self.since += more
        self.during += more


class Quota:
    """Reserves storage for a write, or refuses it."""

    def __init__(self, measure: Measure, clock: Clock) -> None:
        self._measure, self._clock = measure, clock
        self._accounts: OrderedDict[str, _Account] = OrderedDict()

    @asynccontextmanager
    async def room(self, tenant: str, terms: Terms, more: Stored) -> AsyncIterator[None]:
        """Reserves ``more`` while the context is open; raises ``StorageFull`` when it exceeds the quota."""
        if not (terms.stored_bytes or terms.stored_objects):
            yield
            return
        account = self._account(tenant)
        await self._refresh(tenant, account)
        if problem := refusal(account.used, more, terms):
            raise problem
        account.writing += more
        try:
            yield
            account.wrote(more)
        finally:
            account.writing -= more

    def forget(self, tenant: str) -> None:
        """Drops the cached measurement after something of the tenant's was erased."""
        if account := self._accounts.get(tenant):
            account.good_until = float("-inf")

    def _account(self, tenant: str) -> _Account:
        account = self._accounts.setdefault(tenant, _Account())
        self._accounts.move_to_end(tenant)
        if len(self._accounts) > _MAX_TENANTS:
            self._accounts.popitem(last=False)  # the next measurement includes its unfinished writes
        return account

    async def _refresh(self, tenant: str, account: _Account) -> None:
        """Measures again if the last measurement is stale; concurrent callers wait for one measurement."""
        async with account.lock:
            if self._clock.monotonic() < account.good_until:
                return
            account.during = Stored()
            try:
                async with asyncio.timeout(_READ_S):
                    measured = await self._measure(tenant)
            except (DependencyDown, TimeoutError) as error:
                # Turns are accepted while the store is away; the last measurement stays in use.
                account.good_until = self._clock.monotonic() + _AWAY_S
                _logger.warning("quota.not_measured", tenant_id=tenant, error=str(error) or type(error).__name__)
                return
            account.measured, account.since = measured, account.during
            account.good_until = self._clock.monotonic() + _FRESH_S


def refusal(used: Stored, more: Stored, terms: Terms) -> StorageFull | None:
    """The error for a write that exceeds the quota; None when it fits. Pure."""
    for quota, held, asked, unit in (
        (terms.stored_bytes, used.num_bytes, more.num_bytes, "bytes"),
        (terms.stored_objects, used.num_objects, more.num_objects, "objects"),
    ):
        if quota and held + asked > quota:
            return StorageFull(
                f"{held} {unit} are stored for you and this request would add about {asked}; your quota is {quota}. "
                "Delete conversations or responses or files, have answers not stored, or ask for a larger quota."
            )
    return None

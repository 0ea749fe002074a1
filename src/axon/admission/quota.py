"""May this be stored? A tenant's stored bytes and objects against its quota. Knows no table, no route and no rate.

What is stored is measured by the store and remembered here for a second. What this gateway has let in since then is
added to it, what it is writing now as well, so that one gateway lets nobody past the quota however many requests come
at once. Of what other gateways let in, up to a second's worth is not seen yet.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from axon.domain.storage import Stored
from axon.domain.tenant import Terms
from axon.errors import DependencyDown, StorageFull
from axon.runtime.clock import Clock

Measure = Callable[[str], Awaitable[Stored]]
"""What is stored for a tenant now."""

_FRESH_S = 1.0
"""A measurement is trusted for this long."""
_READ_S = 0.5
"""The longest that a request waits for a measurement; a store that is away must not hold up turns."""
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
    """Let in and not yet written."""
    good_until: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def used(self) -> Stored:
        return self.measured + self.since + self.writing

    def wrote(self, more: Stored) -> None:
        self.since += more
        self.during += more


class Quota:
    """Holds room for what is about to be written, or refuses it."""

    def __init__(self, measure: Measure, clock: Clock) -> None:
        self._measure, self._clock = measure, clock
        self._accounts: OrderedDict[str, _Account] = OrderedDict()

    @asynccontextmanager
    async def room(self, tenant: str, terms: Terms, more: Stored) -> AsyncIterator[None]:
        """Raises ``StorageFull`` when there is no room for ``more``; holds it until the write has ended otherwise."""
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
        """Something of the tenant's was erased: what is stored is measured anew for its next request."""
        if account := self._accounts.get(tenant):
            account.good_until = float("-inf")

    def _account(self, tenant: str) -> _Account:
        account = self._accounts.setdefault(tenant, _Account())
        self._accounts.move_to_end(tenant)
        if len(self._accounts) > _MAX_TENANTS:
            self._accounts.popitem(last=False)  # whoever still writes in it is in the next measurement
        return account

    async def _refresh(self, tenant: str, account: _Account) -> None:
        """Measures again when the last time is too long ago; one at a time, the others wait for it."""
        async with account.lock:
            if self._clock.monotonic() < account.good_until:
                return
            account.during = Stored()
            try:
                async with asyncio.timeout(_READ_S):
                    measured = await self._measure(tenant)
            except (DependencyDown, TimeoutError) as error:
                # Turns are accepted while the store is away; what was known last holds.
                account.good_until = self._clock.monotonic() + _AWAY_S
                _logger.warning("quota.not_measured", tenant=tenant, error=str(error) or type(error).__name__)
                return
            account.measured, account.since = measured, account.during
            account.good_until = self._clock.monotonic() + _FRESH_S


def refusal(used: Stored, more: Stored, terms: Terms) -> StorageFull | None:
    """Why so much more does not fit into the quota; None when it does. Pure."""
    for quota, held, asked, unit in (
        (terms.stored_bytes, used.num_bytes, more.num_bytes, "bytes"),
        (terms.stored_objects, used.num_objects, more.num_objects, "objects"),
    ):
        if quota and held + asked > quota:
            return StorageFull(
                f"{held} {unit} are stored for you and this request would add about {asked}; your quota is {quota}. "
                "Delete conversations or responses, send responses and chats with 'store': false, or ask for a larger "
                "quota."
            )
    return None

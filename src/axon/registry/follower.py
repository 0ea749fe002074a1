"""A view of the registry that follows it: a whole snapshot, never an older one again. Knows no use of it."""

import asyncio
import contextlib
import math
from collections.abc import Callable

import structlog

from axon.domain.registry.snapshot import Snapshot
from axon.errors import AxonError, DependencyDown
from axon.ports.live import Wakeups
from axon.ports.store import RegistryStore
from axon.registry.holders import LEASE_S, SILENT_S, Holders
from axon.registry.revisions import CHANNEL, Revisions
from axon.runtime.clock import Clock

LOOK_S = 0.25
"""Seconds between two looks at ``live``; a hint makes the next one at once."""
STORE_S = 1.0
"""Seconds between two looks at the store."""
FRESH_S = 1.0
"""Seconds for which a view counts as fresh after it was confirmed."""
TRUST_S = 3.0
"""Seconds after the store's last word for which ``live`` may confirm a view: a writer that could not reach ``live``
left an old revision there."""

_logger = structlog.get_logger("axon.registry")


class RegistryFollower:
    """Holds the newest snapshot that it has seen; ``changed`` is called with each new one.

    With ``holders``, it announces the revision that it holds under the id ``holder``.
    """

    def __init__(
        self,
        store: RegistryStore,
        revisions: Revisions,
        wakeups: Wakeups,
        clock: Clock,
        *,
        holders: Holders | None = None,
        holder: str = "",
        changed: Callable[[Snapshot], None] = lambda snapshot: None,
    ) -> None:
        self._store, self._revisions, self._wakeups, self._clock = store, revisions, wakeups, clock
        self._holders, self._holder, self._changed = holders, holder, changed
        self._snapshot: Snapshot | None = None
        self._confirmed_at = self._store_at = self._announced_at = -math.inf
        self._is_cut_off = False

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot that was seen; an empty one before the first."""
        return self._snapshot or Snapshot()

    @property
    def is_fresh(self) -> bool:
        """Whether the snapshot was still the registry's newest at a moment within the last second, by this process's
        own monotonic clock: a process that was paused finds its view stale before it uses it."""
        return self._clock.monotonic() - self._confirmed_at <= FRESH_S

    @property
    def is_awaited(self) -> bool:
        """Whether whoever removes a version waits for this process to hear of it: the view is fresh, or the revision
        that was announced last still stands, by this process's own monotonic clock."""
        is_announced = self._clock.monotonic() - self._announced_at < SILENT_S
        return self._holders is None or self.is_fresh or is_announced

    async def open(self) -> None:
        """Loads the first snapshot; raises ``DependencyDown`` without the store."""
        await self._ask_store(self._clock.monotonic())
        await self._announce()

    async def run(self) -> None:
        """Follows until cancelled."""
        while True:
            try:
                async with self._wakeups.listen(CHANNEL) as listener:
                    while True:
                        await self.look()
                        await listener.next(LOOK_S)
            except DependencyDown:
                await self.look()
                await asyncio.sleep(LOOK_S)  # without hints

    async def aclose(self) -> None:
        """Takes its announcement back."""
        if self._holders is not None:
            with contextlib.suppress(DependencyDown):  # then it expires
                await self._holders.withdraw(self._holder)

    async def look(self) -> None:
        """One look at ``live``, and at the store where ``live`` does not confirm the view or its turn has come."""
        began, told = self._clock.monotonic(), None
        with contextlib.suppress(DependencyDown):  # then the store is asked
            told = await self._revisions.read()
        try:
            if told == self.snapshot.revision and began - self._store_at < STORE_S:
                self._confirm(began)
            else:
                await self._ask_store(began, told)
            self._told_cut_off(None)
        except AxonError as error:
            self._told_cut_off(error)
            if told == self.snapshot.revision and began - self._store_at < TRUST_S:
                self._confirm(began)
        await self._announce()

    async def _ask_store(self, began: float, told: int | None = None) -> None:
        revision = await self._store.revision()
        if self._snapshot is None or revision > self._snapshot.revision:
            self._take(await self._store.snapshot(), began)
        elif revision == self._snapshot.revision:
            self._store_at = began
            self._confirm(began)
        else:
            raise DependencyDown(f"The store's registry is at revision {revision}, before what was read of it.")
        if told is None or told < self.snapshot.revision:
            await self._mend()

    def _take(self, found: Snapshot, began: float) -> None:
        if self._snapshot is not None and found.revision < self._snapshot.revision:
            return  # a store that was read from a replica behind
        self._snapshot, self._store_at = found, began
        self._confirm(began)
        self._changed(found)

    def _confirm(self, began: float) -> None:
        """The view was the newest at some moment after ``began``: when the question was sent, not when it was
        answered."""
        self._confirmed_at = max(self._confirmed_at, began)

    async def _mend(self) -> None:
        """Puts the revision into a ``live`` that has lost it, or that an outrun writer has left behind."""
        with contextlib.suppress(DependencyDown):
            await self._revisions.put(self.snapshot.revision)

    async def _announce(self) -> None:
        now = self._clock.monotonic()
        if self._holders is None or now - self._announced_at < LEASE_S / 2:
            return
        with contextlib.suppress(DependencyDown):  # then it is announced at the next look
            if await self._holders.announce(self._holder, self.snapshot.revision):
                self._announced_at = now
            else:
                _logger.warning("registry.no_slot_free", holder=self._holder)

    def _told_cut_off(self, error: AxonError | None) -> None:
        """Logs the first look that failed, and the first one that succeeded again."""
        if error is not None and not self._is_cut_off:
            _logger.warning("registry.cut_off", error=str(error), revision=self.snapshot.revision)
        elif error is None and self._is_cut_off:
            _logger.info("registry.found_again", revision=self.snapshot.revision)
        self._is_cut_off = error is not None

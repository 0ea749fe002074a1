"""Chooses whose text is rendered next. No I/O, no clock; knows no process.

Tenants are served by virtual counters of the seconds that their texts took, the smallest first, so that a tenant with
costly texts goes behind those with cheap ones. Of one tenant one text is rendered at a time, so that its texts never
hold every process.
"""

from collections import deque
from typing import Generic, TypeVar

from axon.domain.fairness.virtual_counters import VirtualCounters
from axon.errors import LimitReached, Overloaded

T = TypeVar("T")


class RenderQueue(Generic[T]):
    """Texts that wait, by tenant."""

    def __init__(self, *, max_of_tenant: int, max_in_all: int) -> None:
        self._max_of_tenant, self._max_in_all = max_of_tenant, max_in_all
        self._waiting: dict[str, deque[T]] = {}
        """Each tenant's texts, oldest first; tenants in the order in which they began to wait."""
        self._busy: set[str] = set()
        """Tenants one of whose texts is being rendered."""
        self._served_s = VirtualCounters()

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def add(self, tenant: str, item: T) -> T | None:
        """Puts an item behind the tenant's others. Where the queue is full, the newest item of the tenant with the most
        gives way and is returned, so that tenants with many cannot close it to one with few.

        Raises ``LimitReached`` if the tenant has too many there, ``Overloaded`` if nobody has more than it would have.
        """
        if len(self._waiting.get(tenant, ())) >= self._max_of_tenant:
            waiting = f"You have {self._max_of_tenant} texts waiting to be rendered"
            raise LimitReached(f"{waiting}, the most that may wait; try again soon.", retry_after_s=1.0)
        displaced = self._displaced_by(tenant) if len(self) >= self._max_in_all else None
        self._waiting.setdefault(tenant, deque()).append(item)
        return displaced

    def take(self) -> T | None:
        """Removes and returns the item that goes next, whose tenant is then busy; None if none may go."""
        free = [tenant for tenant in self._waiting if tenant not in self._busy]
        if not free:
            return None
        tenant = min(free, key=self._served_s.of)
        self._busy.add(tenant)
        item = self._waiting[tenant].popleft()
        self._forget_if_empty(tenant)
        return item

    def done(self, tenant: str, seconds: float) -> None:
        """Notes that the tenant's item has taken so long and is no longer being rendered."""
        self._busy.discard(tenant)
        self._served_s.charge(tenant, seconds)
        active = self._waiting.keys() | self._busy
        if active:
            self._served_s.raise_level(active)
            self._served_s.forget(active)
        else:
            self._served_s = VirtualCounters()  # nobody waits, so nobody has been served too much

    def take_all(self) -> list[T]:
        """Removes and returns all that wait."""
        items = [item for waiting in self._waiting.values() for item in waiting]
        self._waiting.clear()
        return items

    def drop(self, tenant: str, item: T) -> None:
        """Removes an item that waits no longer; nothing happens if it was taken."""
        if item in (waiting := self._waiting.get(tenant, deque())):
            waiting.remove(item)
            self._forget_if_empty(tenant)

    def _displaced_by(self, tenant: str) -> T:
        most = max(self._waiting, key=lambda each: len(self._waiting[each]))
        if len(self._waiting[most]) <= len(self._waiting.get(tenant, ())) + 1:
            raise Overloaded(retry_after_s=1.0)
        return self._waiting[most].pop()

    def _forget_if_empty(self, tenant: str) -> None:
        if not self._waiting[tenant]:
            del self._waiting[tenant]

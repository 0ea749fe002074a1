"""Round robin over tenants: whose waiting item goes next. No I/O, no clock; knows no bound."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class RoundRobin(Generic[T]):
    """Items that wait, by tenant. In each round every tenant that waits goes once, in the order in which they came.

    A tenant that comes in the middle of a round still goes in it, unless it has gone in it already. So it waits for at
    most one item of each other tenant, however many they have.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        """Each tenant's items, oldest first; tenants in the order in which they began to wait."""
        self._gone: set[str] = set()
        """Tenants that have gone in this round."""

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def num_of(self, tenant: str) -> int:
        """Returns how many items of the tenant wait."""
        return len(self._waiting.get(tenant, ()))

    def add(self, tenant: str, item: T) -> None:
        """Puts an item behind the tenant's others."""
        self._waiting.setdefault(tenant, deque()).append(item)

    def take(self) -> T | None:
        """Removes and returns the item that goes next; None, and the end of the round, if none waits."""
        if not self._waiting:
            self._gone.clear()
            return None
        tenant = next((each for each in self._waiting if each not in self._gone), None)
        if tenant is None:
            self._gone.clear()
            tenant = next(iter(self._waiting))
        self._gone.add(tenant)
        item = self._waiting[tenant].popleft()
        self._forget_if_empty(tenant)
        return item

    def drop(self, tenant: str, item: T) -> None:
        """Removes an item that waits no longer; nothing happens if it was taken."""
        if item in (waiting := self._waiting.get(tenant, deque())):
            waiting.remove(item)
            self._forget_if_empty(tenant)

    def _forget_if_empty(self, tenant: str) -> None:
        if not self._waiting[tenant]:
            del self._waiting[tenant]

"""Places of a gateway, of which there are only so many, in all and for each tenant: uploads, WebSockets. No I/O, no
clock."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from axon.errors import LimitReached, Overloaded


class TenantPlaces:
    """Counts the places that each tenant holds; knows no tenant that holds none."""

    def __init__(
        self, max_of_tenant: int, message: str, *, code: str, retry_after_s: float, max_in_all: int | None = None
    ) -> None:
        """A tenant that wants one more is refused with this message and code. ``max_in_all`` bounds the places of all
        tenants together."""
        self._max_of_tenant, self._max_in_all = max_of_tenant, max_in_all
        self._message, self._code, self._retry_after_s = message, code, retry_after_s
        self._held: Counter[str] = Counter()

    @contextmanager
    def held(self, tenant: str) -> Iterator[None]:
        """Holds a place for the tenant; raises ``LimitReached`` if it holds all that it may, ``Overloaded`` if all are
        held."""
        if self._held.get(tenant, 0) >= self._max_of_tenant:
            raise LimitReached(self._message, code=self._code, retry_after_s=self._retry_after_s)
        if self._max_in_all is not None and self._held.total() >= self._max_in_all:
            raise Overloaded(retry_after_s=self._retry_after_s)
        self._held[tenant] += 1
        try:
            yield
        finally:
            self._held[tenant] -= 1
            if not self._held[tenant]:
                del self._held[tenant]

    @property
    def num_tenants(self) -> int:
        """Number of tenants that hold a place now."""
        return len(self._held)

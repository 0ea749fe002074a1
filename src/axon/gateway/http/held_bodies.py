"""Counts the bytes of the request bodies that a gateway holds, in all and of each tenant. No I/O, no clock.

A body counts from the arrival of its first bytes until its turn is accepted or its request is over. Without a bound,
150 requests with a body of 4 MB each would hold 600 MB at once.
"""

from starlette.types import Scope

from axon.errors import LimitReached, Overloaded

HELD_BODY = "axon.held_body"
"""Key of the ASGI scope under which the count of the request's body is kept."""
_RETRY_AFTER_S = 1.0


class HeldBodies:
    """The bytes of all bodies that are held now; each request has a ``HeldBody`` of its own."""

    def __init__(self, *, max_bytes: int, max_tenant_bytes: int) -> None:
        self._max_bytes, self._max_tenant_bytes = max_bytes, max_tenant_bytes
        self.num_bytes = 0
        """Bytes that are held now."""
        self._by_tenant: dict[str, int] = {}
        """The part of each tenant that holds any."""

    def take(self, tenant: str, num_bytes: int) -> None:
        """Counts more bytes of a tenant's; raises ``LimitReached`` or ``Overloaded``, and counts none, beyond a bound.

        ``LimitReached`` says that the tenant's own bodies are too many, ``Overloaded`` that all of them together are.
        """
        of_tenant = self._by_tenant.get(tenant, 0) + num_bytes
        if of_tenant > self._max_tenant_bytes:
            raise LimitReached(
                f"The bodies of your requests that are being read have more than {self._max_tenant_bytes} bytes "
                "together; send fewer at once.",
                code="body_bytes_exceeded",
                retry_after_s=_RETRY_AFTER_S,
            )
        if self.num_bytes + num_bytes > self._max_bytes:
            raise Overloaded(retry_after_s=_RETRY_AFTER_S)
        self.num_bytes += num_bytes
        self._by_tenant[tenant] = of_tenant

    def give(self, tenant: str, num_bytes: int) -> None:
        """Takes bytes out of the count that ``take`` has counted."""
        self.num_bytes -= num_bytes
        left = self._by_tenant.pop(tenant, 0) - num_bytes
        if left > 0:
            self._by_tenant[tenant] = left


class HeldBody:
    """The bytes of one request's body that are counted."""

    def __init__(self, bodies: HeldBodies, tenant: str) -> None:
        self._bodies, self._tenant = bodies, tenant
        self._num_bytes = 0

    def add(self, num_bytes: int) -> None:
        """Counts bytes that have arrived; raises as ``HeldBodies.take`` does."""
        self._bodies.take(self._tenant, num_bytes)
        self._num_bytes += num_bytes

    def release(self) -> None:
        """Takes the body out of the count; a second call changes nothing."""
        self._bodies.give(self._tenant, self._num_bytes)
        self._num_bytes = 0


def release_body(scope: Scope) -> None:
    """Takes the request's body out of the count, if it is in there: it is needed no longer."""
    held: HeldBody | None = scope.get(HELD_BODY)
    if held is not None:
        held.release()

"""A call's metadata and its client's address as the headers and the address of an HTTP request. Pure functions."""

from collections.abc import Iterable
from urllib.parse import unquote

from axon.gateway.turn.headers import GRACE_HEADER, SESSION_HEADER

_TAKEN = frozenset(
    {
        "authorization",
        "idempotency-key",
        "traceparent",
        "x-forwarded-for",
        "x-request-id",
        GRACE_HEADER,
        SESSION_HEADER,
    }
)
"""Keys that mean the same as the headers of these names; all others are ignored."""


def headers_of(metadata: Iterable[tuple[str, str | bytes]]) -> list[tuple[bytes, bytes]]:
    """Returns the entries that are honoured, in their order."""
    return [(name.encode(), _bytes(value)) for name, value in metadata if name in _TAKEN]


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def address_of(peer: str) -> str:
    """Returns the IP address in gRPC's name of a peer: ``ipv4:127.0.0.1:4711``, ``ipv6:%5B::1%5D:4711``.

    A peer without one, such as that of a Unix socket, is returned as it is.
    """
    kind, _, place = unquote(peer).partition(":")
    if kind not in ("ipv4", "ipv6"):
        return peer
    return place.rpartition(":")[0].strip("[]")

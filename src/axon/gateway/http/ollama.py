"""Ollama's API at the level of HTTP: its paths, its errors, and who may ask without a key. Knows no route's meaning."""

import ipaddress
from typing import Any

from starlette.types import Scope

from axon.errors import AxonError
from axon.gateway.http import errors

_PREFIX = "/api/"
_MAX_MESSAGE_CHARS = 1000
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FOREIGN = frozenset(
    {b"authorization", b"origin", b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via"}
)
"""Headers of a request that has a key, comes from a web page, or came through a proxy: it is not let in without a
key."""


def has(path: str) -> bool:
    """Whether a path belongs to Ollama's API."""
    return path.startswith(_PREFIX)


def is_local(scope: Scope) -> bool:
    """Whether a request comes from a program on this machine: over loopback, to a name of loopback, from no web page.

    The name in the Host header is checked because a web page may have its own name point to loopback (DNS rebinding).
    HTTP/1.0 is what older releases of nginx speak to a server behind them. A proxy on this machine that speaks HTTP/1.1
    and adds none of the headers cannot be told from a program.
    """
    headers = scope["headers"]
    if scope["http_version"] == "1.0":
        return False
    if any(name in _FOREIGN for name, _ in headers):
        return False
    host = next((value.decode("latin-1").lower() for name, value in headers if name == b"host"), "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return name in _LOCAL_NAMES and _is_loopback((scope.get("client") or ("",))[0])


def body_of(error: AxonError) -> dict[str, Any]:
    """Returns the JSON body of an error: ``{"error": <message>}``."""
    return {"error": errors.clipped(error.message, _MAX_MESSAGE_CHARS)}


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False

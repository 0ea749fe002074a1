"""The path under which a proxy shows the server, and whether the browser came by https. Knows no route."""

from collections.abc import MutableMapping
from typing import Any

from starlette.types import Send

from axon.runtime.path_prefix import is_prefix


def inside(scope: MutableMapping[str, Any], prefix: str) -> bool:
    """Cuts the prefix off the path of a request whose proxy did not. False for a request of the prefix alone, which
    lacks its slash: the addresses in a page would lead beside the server."""
    path: str = scope.get("path", "/")
    if path.startswith(f"{prefix}/"):
        scope["path"] = path[len(prefix) :]
    return path != prefix or scope["type"] != "http"


async def redirect(prefix: str, send: Send) -> None:
    """Answers a request of the prefix alone: the same with a slash."""
    headers = [(b"location", f"{prefix}/".encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 308, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def prefix_of(scope: MutableMapping[str, Any], *, path_prefix: str, num_proxies: int) -> str:
    """Returns the prefix of the setting, or else the one that our own proxy names; empty where there is none."""
    if path_prefix or not num_proxies:
        return path_prefix
    named = _last(scope, b"x-forwarded-prefix").rstrip("/")
    return named if is_prefix(named) else ""


def is_https(scope: MutableMapping[str, Any], *, num_proxies: int) -> bool:
    """Whether the browser came by https: by this connection, by what our own proxy says, or by what the browser itself
    says of its page."""
    if scope.get("scheme") == "https" or _last(scope, b"origin").startswith("https://"):
        return True
    return bool(num_proxies) and _last(scope, b"x-forwarded-proto").lower() == "https"


def _last(scope: MutableMapping[str, Any], wanted: bytes) -> str:
    """Returns the last value of a header, which the nearest proxy set; empty if there is none."""
    found = [value for name, value in scope["headers"] if name == wanted]
    return found[-1].decode("latin-1").rpartition(",")[2].strip() if found else ""

"""Anthropic's API at the level of HTTP: its paths, its header for the key, its errors. Knows no route's meaning."""

from collections.abc import Iterable
from typing import Any

from axon.errors import AxonError, Overloaded
from axon.gateway.http import errors

_PATH = "/v1/messages"
_OVERLOADED = 529
"""Anthropic's own status for a server at its capacity, by which its clients recognise it."""
_TYPE = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    _OVERLOADED: "overloaded_error",
}
_MAX_MESSAGE_CHARS = 1000


def has(path: str) -> bool:
    """Whether a path belongs to Anthropic's API."""
    return path == _PATH or path.startswith(f"{_PATH}/")


def credentials_of(headers: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """Returns the values of the Authorization headers, with the key of an ``x-api-key`` header as one of them.

    A client that is given its key twice sends it in both headers, which counts as one.
    """
    found: list[bytes] = []
    keys: list[bytes] = []
    for name, value in headers:
        if name == b"authorization":
            found.append(value)
        elif name == b"x-api-key":
            keys.append(b"Bearer " + value.strip())
    return found if keys == found else found + keys


def status_of(error: AxonError) -> int:
    """Returns the HTTP status of an error."""
    return _OVERLOADED if isinstance(error, Overloaded) else errors.status_of(error)


def body_of(error: AxonError, request_id: str, status: int | None = None) -> dict[str, Any]:
    """Returns the JSON body of an error: ``{"type": "error", "error": {type, message}, "request_id"}``."""
    status = status or status_of(error)
    kind = _TYPE.get(status, "invalid_request_error" if status < 500 else "api_error")
    message = errors.clipped(error.message, _MAX_MESSAGE_CHARS)
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}

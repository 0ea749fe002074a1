"""Ollama's API at the level of HTTP: its paths, its errors, and who may ask without a key. Knows no route's meaning."""

from typing import Any

from starlette.types import Scope

from axon.errors import AxonError
from axon.gateway.http import errors
from axon.gateway.http.local import is_over_loopback

_PREFIX = "/api/"
_MAX_MESSAGE_CHARS = 1000
_FOREIGN = frozenset({b"authorization", b"origin"})
"""Headers of a request that has a key or comes from a web page: it is not let in without a key."""


def has(path: str) -> bool:
    """Whether a path belongs to Ollama's API."""
    return path.startswith(_PREFIX)


def is_local(scope: Scope) -> bool:
    """Whether a request comes from a program on this machine: over loopback, through no proxy, from no web page."""
    return not any(name in _FOREIGN for name, _ in scope["headers"]) and is_over_loopback(scope)


def body_of(error: AxonError) -> dict[str, Any]:
    """Returns the JSON body of an error: ``{"error": <message>}``."""
    return {"error": errors.clipped(error.message, _MAX_MESSAGE_CHARS)}

"""Requests with canaries for every route of the application: a good one, and bad ones."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.security.rooms import parameters_of
from tests.security.routes import WAYS, Way

_SPOKEN = frozenset({"hello", "hi", "it swears"})
"""Strings in the good bodies of ``routes`` that are said to a model, or by an administrator."""


@dataclass(frozen=True, slots=True)
class Canaries:
    """What must not come out, by what it is."""

    said: str
    told: str
    named: str


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    method: str
    path: str
    body: bytes | None
    is_admin: bool
    headers: dict[str, str]


def calls(canaries: Canaries) -> Iterator[Call]:
    """Every route in turn: good, with every value wrong, with a body that is no JSON, with wrong headers."""
    for way in WAYS:
        good = None if way.body is None else _spoken(way, canaries)
        yield _call(way, canaries, good)
        if way.body is not None:
            wrong = {name: {canaries.named: canaries.said} for name in way.body}
            yield _call(way, canaries, wrong)
            yield _call(way, canaries, f'{{"{canaries.named}": "{canaries.said}'.encode())
        else:
            yield _call(way, canaries, {canaries.named: canaries.said}, query=f"?after={canaries.told}&limit=x")


def _spoken(way: Way, canaries: Canaries) -> dict[str, Any]:
    body: dict[str, Any] = _replaced(way.body, canaries)
    if "/admin/" in way.path:
        return body
    extra: dict[str, Any] = {"metadata": {"a": canaries.told}, "user": canaries.told}
    if "messages" in body:
        function: dict[str, Any] = {
            "name": "look",
            "description": canaries.said,
            "parameters": {"type": "object", "properties": {"a": {"type": "string", "description": canaries.said}}},
        }
        tool = {"name": "look", "description": canaries.said, "input_schema": function["parameters"]}
        extra["tools"] = [tool if way.path.startswith("/v1/messages") else {"type": "function", "function": function}]
    return {**extra, **body}


def _replaced(value: Any, canaries: Canaries) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(inner, canaries) for name, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, canaries) for inner in value]
    return canaries.said if value in _SPOKEN else value


def _call(way: Way, canaries: Canaries, body: Any, query: str = "") -> Call:
    path = way.path.format(**dict.fromkeys(parameters_of(way.path), canaries.named)) + query
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    headers = {"X-Custom": canaries.told, "Cookie": f"session={canaries.told}", "tracestate": canaries.told}
    return Call(way.method, path, content, "/admin/" in way.path, headers)

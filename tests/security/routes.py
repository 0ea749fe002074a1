"""Every route of the application, from its own table, with what a request to it needs to be a good one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi.routing import iter_route_contexts

from axon.domain.key import Scope
from axon.gateway.app import routes as application

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

_ASK = {"model": "echo", "input": "hello", "max_output_tokens": 2}
_ITEMS = {"items": [{"role": "user", "content": "hello"}]}


@dataclass(frozen=True, slots=True)
class Need:
    """What a route needs."""

    scope: Scope | None
    """None: nothing, it is open to everybody."""
    body: Mapping[str, Any] | None = field(default=None)


_READ = Need(Scope.READ)

NEEDS: dict[tuple[str, str], Need] = {
    ("GET", "/livez"): Need(None),
    ("HEAD", "/livez"): Need(None),
    ("GET", "/readyz"): Need(None),
    ("HEAD", "/readyz"): Need(None),
    ("GET", "/health"): Need(None),
    ("GET", "/docs"): _READ,
    ("GET", "/openapi.json"): _READ,
    ("HEAD", "/openapi.json"): _READ,
    ("GET", "/v1/models"): _READ,
    ("GET", "/v1/models/{model}"): _READ,
    ("POST", "/v1/chat/completions"): Need(
        Scope.INFERENCE, {"model": "echo", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
    ),
    ("POST", "/v1/completions"): Need(Scope.INFERENCE, {"model": "echo", "prompt": "hello", "max_tokens": 2}),
    ("GET", "/v1/streams/{stream_id}"): _READ,
    ("POST", "/v1/responses"): Need(Scope.INFERENCE, _ASK),
    ("POST", "/v1/responses/input_tokens"): Need(Scope.INFERENCE, _ASK),
    ("GET", "/v1/responses/{response_id}"): _READ,
    ("DELETE", "/v1/responses/{response_id}"): Need(Scope.INFERENCE),
    ("POST", "/v1/responses/{response_id}/cancel"): Need(Scope.INFERENCE),
    ("GET", "/v1/responses/{response_id}/input_items"): _READ,
    ("POST", "/v1/conversations"): Need(Scope.INFERENCE, _ITEMS),
    ("GET", "/v1/conversations/{conversation_id}"): _READ,
    ("POST", "/v1/conversations/{conversation_id}"): Need(Scope.INFERENCE, {"metadata": {"a": "b"}}),
    ("DELETE", "/v1/conversations/{conversation_id}"): Need(Scope.INFERENCE),
    ("POST", "/v1/conversations/{conversation_id}/items"): Need(Scope.INFERENCE, _ITEMS),
    ("GET", "/v1/conversations/{conversation_id}/items"): _READ,
    ("GET", "/v1/conversations/{conversation_id}/items/{item_id}"): _READ,
    ("DELETE", "/v1/conversations/{conversation_id}/items/{item_id}"): Need(Scope.INFERENCE),
}
"""A new route is not covered until it stands here, and a test says so."""


def declared() -> Iterator[tuple[str, str]]:
    """Method and path of each route, as the application has them."""
    for route in iter_route_contexts(application("test").routes):
        assert route.methods, f"{route} is no plain route: say here how it is to be asked"
        for method in sorted(route.methods):
            yield method, str(route.path_format)


OURS = sorted(set(declared()))
OPEN = sorted(path for (_, path), need in NEEDS.items() if need.scope is None)
CLOSED = [each for each in OURS if NEEDS.get(each, _READ).scope is not None]
PATHS = sorted({path for _, path in OURS})

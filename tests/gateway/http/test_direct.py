"""A direct route is answered as the framework would answer it, and every other request is the framework's."""

from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from axon.domain.tenants.key import Scope as KeyScope
from axon.errors import InvalidInput
from axon.gateway.http.auth import Identity
from axon.gateway.http.direct import Direct

PATH = "/v1/completions"


async def framework(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("the framework")(scope, receive, send)


async def endpoint(request: Request) -> Response:
    if request.query_params.get("wrong"):
        raise InvalidInput("wrong")
    return PlainTextResponse(f"direct {request.scope['route'].path} {request.app is framework}")


async def on_error(request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{type(error).__name__}: {error}", 400)


async def asked(method: str, path: str, *, query: bytes = b"", scope: KeyScope = KeyScope.INFERENCE) -> str:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body is not read")

    async def send(message: Message) -> None:
        sent.append(message)

    request: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query,
        "headers": [],
        "axon.identity": Identity("k0000001", "acme", frozenset({scope})),
    }
    app = Direct(framework, [Route(PATH, endpoint, methods=["POST"])], on_error)
    await app(request, receive, send)
    return b"".join(message.get("body", b"") for message in sent).decode()


async def test_a_direct_route_knows_its_application_and_its_path() -> None:
    assert await asked("POST", PATH) == f"direct {PATH} True"


@pytest.mark.parametrize(("method", "path"), [("GET", PATH), ("POST", f"{PATH}/"), ("POST", "/v1/models")])
async def test_another_method_or_path_is_the_frameworks(method: str, path: str) -> None:
    assert await asked(method, path) == "the framework"


async def test_a_key_without_the_scope_is_refused() -> None:
    assert (await asked("POST", PATH, scope=KeyScope.READ)).startswith("Forbidden: ")


async def test_an_error_is_answered_by_the_applications_handler() -> None:
    assert await asked("POST", PATH, query=b"wrong=1") == "InvalidInput: wrong"

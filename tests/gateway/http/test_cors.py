"""Browsers: whose pages may call, what a preflight is answered, and what a page's program may read."""

import httpx
import pytest

from axon.errors import Misconfigured
from axon.gateway.http.auth import Authenticator
from axon.gateway.http.cors import origins_of
from axon.gateway.http.middleware import Middleware
from axon.runtime.clock import FakeClock
from axon.runtime.lifecycle import Lifecycle
from axon.settings import load
from axon.telemetry.metrics import Metrics

PAGE = "https://chat.example.com"
ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-stainless-os"}


class NoKeys:
    """Knows no key."""

    async def access(self, key_id: str) -> None:
        return None


async def asked(method: str, origins: str, path: str = "/v1/models", **headers: str) -> httpx.Response:
    async def stream(scope: object, receive: object, send: object) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
        await send(start)  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b"data: [DONE]"})  # type: ignore[operator]

    edge = Middleware(
        stream,
        authenticator=Authenticator(NoKeys(), b"pepper", FakeClock()),  # type: ignore[arg-type]
        lifecycle=Lifecycle(),
        metrics=Metrics(),
        max_connections=10,
        cors_origins=origins_of(origins),
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(edge), base_url="http://axon") as client:
        return await client.request(method, path, headers=headers)


def allowed(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize("origins", [PAGE, f"http://localhost:3000, {PAGE}", "*"])
async def test_a_preflight_is_answered_without_a_key(origins: str) -> None:
    answer = await asked("OPTIONS", origins, Origin=PAGE, **ASKS)
    assert answer.status_code == 200
    assert allowed(answer)["access-control-allow-origin"] == ("*" if origins == "*" else PAGE)
    assert allowed(answer)["access-control-allow-headers"] == "authorization,x-stainless-os"
    assert "POST" in allowed(answer)["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in allowed(answer)


@pytest.mark.parametrize("origins", ["", "https://other.example.com"])
@pytest.mark.parametrize("method", ["OPTIONS", "GET"])
async def test_a_page_that_is_not_named_is_allowed_nothing(origins: str, method: str) -> None:
    answer = await asked(method, origins, Origin=PAGE, **ASKS)
    assert answer.status_code == 401
    assert not allowed(answer)


@pytest.mark.parametrize(("path", "status"), [("/livez", 200), ("/v1/models", 401)], ids=["a stream", "an error"])
@pytest.mark.parametrize("origins", [PAGE, "*"])
async def test_a_page_may_read_answers_and_their_headers(origins: str, path: str, status: int) -> None:
    answer = await asked("GET", origins, path, Origin=PAGE)
    assert answer.status_code == status
    assert allowed(answer)["access-control-allow-origin"] == ("*" if origins == "*" else PAGE)
    exposed = allowed(answer)["access-control-expose-headers"].split(", ")
    assert {"x-request-id", "x-axon-stream", "retry-after-ms", "x-should-retry"} <= set(exposed)
    assert {"x-axon-state", "x-axon-queue-position", "x-axon-expected-wait-s"} <= set(exposed)
    assert "access-control-allow-credentials" not in allowed(answer)


@pytest.mark.parametrize(
    "origins",
    [
        *("chat.example.com", "https://chat.example.com/", f"{PAGE}, https://a/b", "https://"),
        *(
            "https://*.example.com",
            "https://Chat.example.com",
            "HTTPS://chat.example.com",
            "https://b\u00fccher.example",
        ),
        *("https://chat.example.com:443", "http://chat.example.com:80", "https://[::1]:443", "https://a..b"),
        *("https://chat.example.com:", "https://chat.example.com:080", "https://chat.example.com:123456"),
        *("localhost:3000", "//chat.example.com", "https://me@chat.example.com", "https://a?b", "https://a b"),
    ],
)
def test_what_is_no_origin_is_refused_at_the_start(origins: str) -> None:
    with pytest.raises(Misconfigured, match=r"gateway\.cors_origins"):
        load({"gateway.cors_origins": origins}, environ={})


@pytest.mark.parametrize(
    "origin",
    [
        *("*", PAGE, "http://localhost", "http://localhost:3000", "https://127.0.0.1:8443", "http://[::1]:5173"),
        *("https://chat.example.com:80", "chrome-extension://abcdefghijklmnop", "capacitor://localhost", "http://a_b"),
    ],
)
def test_what_a_browser_may_send_is_taken(origin: str) -> None:
    assert load({"gateway.cors_origins": origin}, environ={}).settings.gateway.cors_origins == origin


def test_origins_are_divided_by_commas() -> None:
    loaded = load({"gateway.cors_origins": f"{PAGE}, http://localhost:3000"}, environ={})
    assert origins_of(loaded.settings.gateway.cors_origins) == (PAGE, "http://localhost:3000")

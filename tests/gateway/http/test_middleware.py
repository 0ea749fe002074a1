"""What stands in the headers of every answer, and who is kept out before anything is looked at."""

import httpx
import pytest
from starlette.types import Message, Scope
from structlog.testing import capture_logs

from axon.domain.tenants.key import new_key_text
from axon.errors import DependencyDown
from axon.gateway.http.auth import Authenticator
from axon.gateway.http.guess_limit import GuessLimit
from axon.gateway.http.middleware import Middleware, duration
from axon.gateway.http.outages import Outages
from axon.runtime.clock import FakeClock
from axon.runtime.lifecycle import Lifecycle
from axon.telemetry.metrics import Metrics


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0ms"), (0.0121, "13ms"), (0.9995, "1000ms"), (1, "1s"), (1.5, "1.5s"), (60, "1m0s"), (366.25, "6m6.25s")],
)
def test_durations_are_written_as_go_writes_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


class Guarded:
    """An edge with nothing behind it that lets in no key, and only two guesses a minute."""

    def __init__(self, num_proxies: int) -> None:
        clock = FakeClock()
        self.is_away = False
        self.edge = Middleware(
            self._nothing,
            authenticator=Authenticator(self, b"pepper", clock, guesses=GuessLimit(2, clock)),  # type: ignore[arg-type]
            lifecycle=Lifecycle(),
            metrics=Metrics(),
            max_connections=10,
            num_proxies=num_proxies,
            paths=["/v1/models"],
        )

    async def access(self, key_id: str) -> None:
        """Knows no key, and cannot say so while it is away."""
        if self.is_away:
            raise DependencyDown("The store does not answer.") from OSError("connection refused")

    async def _nothing(self, scope: object, receive: object, send: object) -> None:
        raise AssertionError("nobody is let in")

    async def get(self, path: str, **headers: bytes) -> httpx.Response:
        transport = httpx.ASGITransport(self.edge, client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://axon") as client:
            return await client.get(path, headers={name.encode(): value for name, value in headers.items()})

    async def guess(self, peer: str, forwarded: str = "") -> httpx.Response:
        transport = httpx.ASGITransport(self.edge, client=(peer, 1))
        headers = {"Authorization": f"Bearer {new_key_text()[1]}", "X-Forwarded-For": forwarded}
        async with httpx.AsyncClient(transport=transport, base_url="http://axon") as client:
            return await client.get("/v1/models", headers=headers)


async def test_who_guesses_keys_is_told_to_wait_and_when_to_come_back() -> None:
    guarded = Guarded(num_proxies=0)
    statuses = [(await guarded.guess("192.0.2.1", f"198.51.100.{number}")).status_code for number in range(2)]
    last = await guarded.guess("192.0.2.1", "198.51.100.9")
    assert [*statuses, last.status_code] == [401, 401, 429]
    assert (last.json()["error"]["code"], last.headers["retry-after-ms"]) == ("too_many_failures", "30000")
    assert (await guarded.guess("192.0.2.2")).status_code == 401


async def test_behind_our_own_proxy_the_client_is_told_from_others_and_not_by_its_own_word() -> None:
    guarded = Guarded(num_proxies=1)
    for number in range(2):
        assert (await guarded.guess("10.0.0.1", f"203.0.113.{number}, 192.0.2.1")).status_code == 401
    assert (await guarded.guess("10.0.0.1", "203.0.113.9, 192.0.2.1")).status_code == 429
    assert (await guarded.guess("10.0.0.1", "192.0.2.2")).status_code == 401


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
@pytest.mark.parametrize(
    "authorization", [b"", b"Basic \xff\xfe", b"Basic //79/A==", b"Basic !", b"Basic OmF4aw==", b"Bearer axk"]
)
async def test_a_page_says_how_to_log_in(path: str, authorization: bytes) -> None:
    answer = await Guarded(num_proxies=0).get(path, authorization=authorization)
    assert answer.status_code == 401
    assert "any user name and your API key as the password" in answer.json()["error"]["message"]
    assert answer.headers["www-authenticate"].startswith("Basic ")


async def test_other_routes_ask_for_a_bearer_token_alone() -> None:
    answer = await Guarded(num_proxies=0).get("/v1/models", authorization=b"Basic OmF4aw==")
    assert "password" not in answer.json()["error"]["message"]
    assert answer.headers["www-authenticate"].startswith("Bearer ")


async def test_the_log_says_what_was_refused_and_to_whom() -> None:
    with capture_logs() as lines:
        await Guarded(num_proxies=0).get("/v1/odd%0a%1b[31mpath?secret=hidden")
    [line] = lines
    assert (line["route"], line["status"], line["client"]) == ("unmatched", 401, "192.0.2.1")
    assert line["path"] == "/v1/odd??[31mpath"
    assert "hidden" not in str(line)


async def test_what_is_refused_before_routing_is_counted_under_its_route() -> None:
    with capture_logs() as lines:
        await Guarded(num_proxies=0).get("/v1/models")
        await Guarded(num_proxies=0).get("/v1/models/small")
    assert [(line["route"], line["status"]) for line in lines] == [("/v1/models", 401), ("unmatched", 401)]


async def test_a_path_in_the_log_has_an_end() -> None:
    with capture_logs() as lines:
        await Guarded(num_proxies=1).get("/" + "a" * 5000)
    assert len(lines[0]["path"]) == 201


async def test_the_log_names_the_client_that_our_proxy_has_seen() -> None:
    with capture_logs() as lines:
        await Guarded(num_proxies=1).guess("10.0.0.1", "203.0.113.9, 192.0.2.7")
    assert lines[0]["client"] == "192.0.2.7"


async def test_a_dependency_that_is_away_is_named_in_the_log_with_its_cause_and_not_for_every_request() -> None:
    guarded = Guarded(num_proxies=0)
    guarded.is_away = True
    with capture_logs() as lines:
        statuses = [(await guarded.guess("192.0.2.1")).status_code for _ in range(3)]
    assert statuses == [503] * 3
    [line] = [line for line in lines if line["event"] == "dependency.unavailable"]
    assert (line["log_level"], line["problem"]) == ("warning", "The store does not answer.")
    assert "connection refused" in line["cause"]


def test_a_line_about_an_outage_says_for_how_many_requests_it_stands() -> None:
    outages, down, other = Outages(), DependencyDown("The store."), DependencyDown("The queue.")
    assert [outages.note(down, now) for now in (0.0, 1.0, 4.9, 5.0, 6.0, 10.0)] == [1, 0, 0, 3, 0, 2]
    assert outages.note(other, 10.0) == 1


class Scopes:
    """An edge around an application that notes what reaches it."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.sent: list[Message] = []
        clock = FakeClock()
        self.edge = Middleware(
            self._app,
            authenticator=Authenticator(self, b"pepper", clock),  # type: ignore[arg-type]
            lifecycle=Lifecycle(),
            metrics=Metrics(),
            max_connections=10,
            cors_origins=["*"],
        )

    async def access(self, key_id: str) -> None:
        """Knows no key."""

    async def _app(self, scope: Scope, receive: object, send: object) -> None:
        self.reached.append(scope["type"])

    async def ask(self, **scope: object) -> None:
        async def receive() -> Message:
            return {"type": "websocket.connect"}

        async def send(message: Message) -> None:
            self.sent.append(message)

        await self.edge({"path": "/v1/responses", "headers": [], "method": "GET", **scope}, receive, send)


@pytest.mark.parametrize("path", ["/v1/responses", "/", "/livez", "/nowhere"])
async def test_a_websocket_that_nobody_serves_is_closed_before_it_is_accepted(path: str) -> None:
    scopes = Scopes()
    await scopes.ask(type="websocket", path=path)
    assert [(each["type"], each.get("code")) for each in scopes.sent] == [("websocket.close", 1008)]
    assert scopes.reached == []


@pytest.mark.parametrize("kind", ["webtransport", "http3", ""])
async def test_a_connection_of_an_unknown_type_is_refused(kind: str) -> None:
    scopes = Scopes()
    with pytest.raises(ValueError, match="not served"):
        await scopes.ask(type=kind)
    assert (scopes.sent, scopes.reached) == ([], [])


async def test_the_servers_own_lifespan_passes() -> None:
    scopes = Scopes()
    await scopes.ask(type="lifespan")
    assert scopes.reached == ["lifespan"]


async def test_an_http_request_without_a_key_reaches_nothing() -> None:
    scopes = Scopes()
    await scopes.ask(type="http")
    assert scopes.sent[0]["status"] == 401
    assert scopes.reached == []

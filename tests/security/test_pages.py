"""The pages of a real server, attacked: what a browser carries, what others see of it, and where a key can be found."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.journeys.server import Server, running, wait_until
from tests.security.keyring import Keyring, bearer
from tests.security.raw import answers, connected

ASK = {"model": "echo", "prompt": "hello", "max_tokens": 2}


class Tab:
    """A browser's tab at a server: a cookie and a token."""

    def __init__(self, server: Server, **proof: str) -> None:
        self.http = httpx.Client(base_url=server.url, timeout=60)
        self.signed = self.http.post("/ui/sign-in", json=proof)
        self.token = {"x-axon-csrf": self.signed.json().get("csrf", "")}

    def __enter__(self) -> "Tab":
        return self

    def __exit__(self, *error: object) -> None:
        self.http.close()


def code_of(screen: str) -> str:
    """The one-time code on a start screen."""
    found = re.search(r"#code=([\w-]+)", screen)
    assert found is not None, screen
    return found[1]


TWO_PROCESSES = {"engine_kind": "echo", "gateway_processes": 2, "gateway_failures_per_minute": 0}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of two processes, whose sessions nobody else's tests count."""
    with running(tmp_path_factory.mktemp("pages") / "data", **TWO_PROCESSES) as server:
        yield server


@pytest.fixture
def just_started(tmp_path: Path) -> Iterator[Server]:
    """Such a server whose link is still good, whatever ran before."""
    with running(tmp_path / "data", **TWO_PROCESSES) as server:
        yield server


def test_the_link_on_the_screen_signs_in_once_whichever_process_is_asked(just_started: Server) -> None:
    own = just_started
    code = code_of(own.screen)
    with Tab(own, code=code) as tab:
        assert tab.signed.status_code == 200, tab.signed.text
        assert tab.signed.json()["key"] == own.key[4:12]
        for _ in range(10):  # new connections, which the two processes share
            fresh = httpx.get(f"{own.url}/ui/session", cookies=tab.http.cookies, timeout=60)
            assert fresh.json() == tab.signed.json()
            again = httpx.post(f"{own.url}/ui/sign-in", json={"code": code}, timeout=60)
            assert (again.status_code, again.json()["error"]["code"]) == (401, "invalid_code")
    assert code not in own.log
    assert own.key[13:] not in own.log


def test_a_session_signs_out_at_every_process(own: Server) -> None:
    with Tab(own, key=own.key) as tab:
        cookies = httpx.Cookies(tab.http.cookies)
        assert tab.http.post("/ui/sign-out", headers=tab.token).status_code == 200
        wait_until(lambda: _statuses(own, cookies) == {401}, "every process has heard of it")


def _statuses(server: Server, cookies: httpx.Cookies) -> set[int]:
    asked = [httpx.get(f"{server.url}/ui/session", cookies=cookies, timeout=60) for _ in range(8)]
    return {reply.status_code for reply in asked}


def test_a_session_outlives_a_restart_and_a_new_start_has_a_new_link(own: Server) -> None:
    with Tab(own, key=own.key) as tab:
        cookies = httpx.Cookies(tab.http.cookies)
        own.stop()
        own.start()
        assert _statuses(own, cookies) == {200}
        with Tab(own, code=code_of(own.screen)) as later:
            assert later.signed.status_code == 200, "a new start prints a new code"


def test_a_cookie_works_as_its_key_and_no_further(server: Server, keys: Keyring) -> None:
    with Tab(server, key=keys.reader) as tab:
        assert tab.http.get("/v1/models").status_code == 200
        assert tab.http.post("/v1/completions", json=ASK, headers=tab.token).status_code == 403
        assert tab.http.get("/v1/admin/tenants").status_code == 403
    with Tab(server, key=keys.mine) as tab:
        assert tab.http.post("/v1/completions", json=ASK, headers=tab.token).status_code == 200
        assert tab.http.post("/v1/completions", json=ASK).json()["error"]["code"] == "csrf"
        foreign = tab.http.get("/v1/usage", headers={"sec-fetch-site": "cross-site"})
        assert foreign.json()["error"]["code"] == "cross_site"


@pytest.mark.parametrize("which", ["revoked", "expired", "suspended"])
def test_a_key_that_is_not_good_signs_nobody_in(server: Server, keys: Keyring, which: str) -> None:
    with Tab(server, key=getattr(keys, which)) as tab:
        assert tab.signed.status_code == (403 if which == "suspended" else 401)
        assert "set-cookie" not in tab.signed.headers


def test_a_websocket_takes_no_cookie(server: Server, keys: Keyring) -> None:
    with Tab(server, key=keys.mine) as tab:
        cookie = f"axon_session={tab.http.cookies['axon_session']}"
        head = (
            f"GET /v1/responses HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nCookie: {cookie}\r\n\r\n"
        )
        with connected(server) as line:
            line.sendall(head.encode())
            assert next(answers(line, most=1)).status == 401


def test_a_huge_request_to_sign_in_is_refused_before_it_is_here(server: Server) -> None:
    head = (
        "POST /ui/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        f"Content-Length: {1 << 30}\r\n\r\n" + "a" * 8192
    )
    with connected(server) as line:
        line.sendall(head.encode())
        answer = next(answers(line, most=1))
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (413, "request_too_large")


def test_neither_keys_nor_cookies_are_in_the_log_or_in_any_page(server: Server, keys: Keyring) -> None:
    with Tab(server, key=keys.mine) as tab:
        cookie = tab.http.cookies["axon_session"]
        for path in ("/", "/console", "/sign-in", "/ui/common/api.js", "/docs", "/ui/session", "/v1/models"):
            reply = tab.http.get(path, headers={"accept": "text/html"})
            assert keys.mine[13:] not in reply.text
            assert cookie not in reply.text
        tab.http.get(f"/{keys.mine}")
        assert httpx.get(f"{server.url}/ui/session", headers=bearer(keys.mine), timeout=60).json()["csrf"] == ""
    assert keys.mine[13:] not in server.log
    assert cookie not in server.log

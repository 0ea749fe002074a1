"""Whoever sends many large bodies at once: beyond a bound they are told to come back, and the others are served."""

import contextlib
import json
import select
import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.journeys.server import Server, running, wait_until
from tests.security.keyring import Keyring, make_keys
from tests.security.raw import PATIENCE_S, connected

LARGE = 1 << 20
ASK = {"model": "echo", "prompt": "hello", "max_tokens": 1}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that holds two large bodies of a tenant, and three in all; its answers take their time."""
    settings = {
        "engine_kind": "echo",
        "engine_echo_step_s": 0.02,
        "gateway_max_body_bytes": LARGE,
        "gateway_max_tenant_body_bytes": 2 * LARGE,
        "gateway_max_held_body_bytes": 3 * LARGE,
        "admission_requests_per_minute": 0,
    }
    with running(tmp_path_factory.mktemp("held") / "data", **settings) as server:
        yield server


@pytest.fixture(scope="module")
def keys(server: Server) -> Keyring:
    return make_keys(server)


def padded(num_bytes: int, **fields: object) -> bytes:
    """A request of this size, most of it in a field that nobody reads."""
    body = {**ASK, **fields, "padding": ""}
    return json.dumps({**body, "padding": "x" * (num_bytes - len(json.dumps(body)))}).encode()


def post(server: Server, key: str, body: bytes) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}", "content-type": "application/json"}
    return httpx.post(f"{server.url}/v1/completions", content=body, headers=headers, timeout=PATIENCE_S)


def head(key: str) -> bytes:
    """The headers of a request with a large body."""
    told = ["POST /v1/completions HTTP/1.1", "Host: axon", f"Authorization: Bearer {key}", f"Content-Length: {LARGE}"]
    return "\r\n".join([*told, "", ""]).encode()


class Unfinished:
    """Requests whose large bodies lack their last byte."""

    def __init__(self, server: Server, key: str, num: int) -> None:
        self._server, self._key = server, key
        self.lines = [self._begin() for _ in range(num)]

    def _begin(self) -> socket.socket:
        line = connected(self._server)
        line.sendall(head(self._key) + padded(LARGE)[:-1])
        return line

    def go_on(self) -> bool:
        """Begins those again that were refused: what this test asks meanwhile is held too, and may leave no room."""
        for number, line in enumerate(self.lines):
            if select.select([line], [], [], 0)[0]:
                line.close()
                self.lines[number] = self._begin()
        return True

    def close(self) -> None:
        for line in self.lines:
            line.close()


@contextlib.contextmanager
def unfinished(server: Server, key: str, num: int) -> Iterator[Unfinished]:
    with contextlib.closing(Unfinished(server, key, num)) as begun:
        yield begun


def test_beyond_a_tenants_bound_its_requests_are_told_to_come_back(server: Server, keys: Keyring) -> None:
    with unfinished(server, keys.mine, 2) as begun:
        wait_until(lambda: begun.go_on() and post(server, keys.mine, padded(1000)).status_code == 429, "both are held")
        refused = post(server, keys.mine, padded(1000))
        assert refused.json()["error"]["code"] == "body_bytes_exceeded"
        assert (refused.json()["error"]["type"], refused.headers["x-should-retry"]) == ("rate_limit_error", "true")
        assert int(refused.headers["retry-after"]) >= 1
        assert post(server, keys.foreign, padded(1000)).status_code == 200
        for line in begun.lines:  # nothing of what is held is lost
            line.sendall(b"}")
            assert line.recv(12) == b"HTTP/1.1 200"
    assert post(server, keys.mine, padded(1000)).status_code == 200


def test_beyond_the_gateways_bound_everybody_is_told_to_come_back(server: Server, keys: Keyring) -> None:
    with unfinished(server, keys.mine, 2) as mine, unfinished(server, keys.foreign, 1) as others:

        def held(key: str, status: int) -> bool:
            return mine.go_on() and others.go_on() and post(server, key, padded(1000)).status_code == status

        wait_until(lambda: held(keys.asker, 429), "one tenant's are held")
        wait_until(lambda: held(keys.foreign, 503), "all of them are held")
        refused = post(server, keys.foreign, padded(1000))
        assert refused.json()["error"]["code"] == "overloaded"
        assert int(refused.headers["retry-after"]) >= 1
        assert httpx.get(f"{server.url}/livez", timeout=PATIENCE_S).status_code == 200
    # Their clients have left: whatever they had sent is not held any more.
    wait_until(lambda: post(server, keys.mine, padded(LARGE)).status_code == 200, "there is room again")
    wait_until(lambda: post(server, keys.foreign, padded(LARGE)).status_code == 200, "for the others too")


def test_an_answer_that_is_being_written_holds_no_body(server: Server, keys: Keyring) -> None:
    body = padded(LARGE, max_tokens=5000, ignore_eos=True)
    before = server.metric("axon_requests_running")
    with contextlib.ExitStack() as stack:
        for number in range(1, 5):
            stack.enter_context(connected(server)).sendall(head(keys.mine) + body)
            wait_until(lambda n=number: server.metric("axon_requests_running") == before + n, "it runs")  # type: ignore[misc]

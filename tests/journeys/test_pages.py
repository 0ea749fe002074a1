"""A person at the pages, wherever the server keeps things: signs in, asks, and is out when the key is."""

import re
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.journeys.conftest import PATIENT, Settings
from tests.journeys.server import Server, running, wait_until

ASK = {"model": "echo", "prompt": "hello " * 200, "max_tokens": 100_000, "ignore_eos": True, "stream": True}


@pytest.fixture(scope="module")
def pair(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of two processes whose answers take their time."""
    settings = {"engine_kind": "echo", "engine_echo_step_s": 0.02, "engine_max_model_len": 200_000}
    with running(
        tmp_path_factory.mktemp("pages") / "data", gateway_processes=2, **settings, **PATIENT, **place()
    ) as server:
        yield server


def test_a_browser_is_signed_in_at_every_process_until_its_key_is_revoked(pair: Server) -> None:
    found = re.search(r"#code=([\w-]+)", pair.screen)
    assert found is not None
    with httpx.Client(base_url=pair.url, timeout=60) as tab:
        signed = tab.post("/ui/sign-in", json={"code": found[1]})
        assert signed.status_code == 200, signed.text
        cookies = httpx.Cookies(tab.cookies)
        assert {_asked(pair, cookies) for _ in range(10)} == {200}
        token = {"x-axon-csrf": signed.json()["csrf"]}
        with tab.stream("POST", "/v1/completions", json=ASK, headers=token) as reply:
            lines = reply.iter_lines()
            assert next(lines).startswith("data: ")
            assert pair.axon("keys", "revoke", signed.json()["key"]).returncode == 0
            assert "key_revoked" in "".join(lines), "the stream ends with its key"
        wait_until(lambda: {_asked(pair, cookies) for _ in range(6)} == {401}, "every process has heard of it")


def _asked(server: Server, cookies: httpx.Cookies) -> int:
    """The status of a look at the session, over a connection of its own."""
    return httpx.get(f"{server.url}/ui/session", cookies=cookies, timeout=60).status_code

"""A server with traffic of two tenants, and the program that shows it."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.journeys.server import Server, running, wait_until

_TENANTS = "acme", "globex"
_TEXT = "It is read again and again. " * 6


@dataclass(frozen=True)
class Watched:
    """A server, and a key that may look at it."""

    server: Server
    key: str

    @property
    def flags(self) -> tuple[str, ...]:
        return "--url", self.server.url, "--key", self.key, "--interval", "0.5"

    def tenants(self) -> set[str]:
        """The tenants that the server has counted since it started; none while it does not answer."""
        headers = {"Authorization": f"Bearer {self.key}"}
        try:
            answer = httpx.get(f"{self.server.url}/v1/admin/overview", headers=headers, timeout=60)
        except httpx.TransportError:
            return set()
        return {each["tenant"] for each in answer.raise_for_status().json()["tenants"]}


@pytest.fixture
def watched(_busy: Watched) -> Watched:
    """Both tenants have been counted, also where the test before this one restarted the server."""
    wait_until(lambda: _busy.tenants() >= set(_TENANTS), "both tenants are counted")
    return _busy


@pytest.fixture(scope="session")
def _busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    settings = {"engine_kind": "echo", "engine_echo_step_s": 0.005, "admission_requests_per_minute": 0}
    with running(tmp_path_factory.mktemp("top") / "data", **settings) as server:
        keys = [_key(server, tenant) for tenant in _TENANTS]
        with _Traffic(server, keys):
            yield Watched(server, _key(server, "ops", "--scope", "admin"))


def _key(server: Server, tenant: str, *more: str) -> str:
    made = server.axon("keys", "create", "--tenant", tenant, *more)
    made.check_returncode()
    return made.stdout.strip()


class _Traffic:
    """Two streams at any time, until the end of the block; the server may restart meanwhile."""

    def __init__(self, server: Server, keys: list[str]) -> None:
        self._server, self._has_ended = server, threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(key,)) for key in keys]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *what: object) -> None:
        self._has_ended.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, key: str) -> None:
        body = {"model": "echo", "messages": [{"role": "user", "content": _TEXT}], "stream": True}
        while not self._has_ended.wait(0.05):
            try:
                url = f"{self._server.url}/v1/chat/completions"
                headers = {"Authorization": f"Bearer {key}"}
                with httpx.stream("POST", url, json=body, headers=headers, timeout=60) as response:
                    for _ in response.iter_bytes():
                        if self._has_ended.is_set():
                            break
            except httpx.HTTPError:
                continue

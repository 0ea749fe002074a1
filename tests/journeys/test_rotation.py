"""Passwords of all services are rotated while turns run, over TLS: nothing is lost and nothing is run twice."""

import itertools
import threading
from pathlib import Path

import httpx
import pytest

from tests.contracts import postgres_backend
from tests.journeys.conftest import FEW_LANES, PATIENT
from tests.journeys.server import Server, running, wait_until
from tests.long import whole
from tests.services import rabbitmq, redis
from tests.services.certificates import shared_authority
from tests.services.require import require
from tests.services.rotation import rotating

pytestmark = pytest.mark.services
NUM_TOKENS = 40
PROMPT = "one two three four five six seven eight nine ten "
NUM_CLIENTS = 4
TURNS_BETWEEN = 8
"""Turns that are answered before the next service is rotated."""


class Load:
    """Clients that ask one turn after the other, each again with its Idempotency-Key until it is answered."""

    def __init__(self, server: Server) -> None:
        self._server, self._numbers = server, itertools.count()
        self._stopping = threading.Event()
        self.answers: dict[str, str] = {}
        self.problems: list[str] = []
        self._threads = [threading.Thread(target=self._ask_on, daemon=True) for _ in range(NUM_CLIENTS)]

    def __enter__(self) -> "Load":
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for each in self._threads:
            each.join(60)

    def wait_for_more(self) -> None:
        """Turns that began after this call are among those that it waits for."""
        enough = len(self.answers) + NUM_CLIENTS + TURNS_BETWEEN
        wait_until(lambda: len(self.answers) >= enough or self.problems, "more turns are answered", timeout_s=120.0)
        assert not self.problems

    def _ask_on(self) -> None:
        with self._server.client() as http:
            while not self._stopping.is_set():
                key = f"turn {next(self._numbers)}"
                while key not in self.answers:
                    self._ask(http, key)

    def _ask(self, http: httpx.Client, key: str) -> None:
        body = {"model": "echo", "prompt": PROMPT, "max_tokens": NUM_TOKENS, "temperature": 0, "ignore_eos": True}
        reply = http.post("/v1/completions", json=body, headers={"Idempotency-Key": key})
        if reply.status_code == 200:
            self.answers[key] = reply.json()["choices"][0]["text"]
        elif reply.status_code not in (409, 503):
            self.problems.append(reply.text)
            self._stopping.set()
            self.answers[key] = ""


@pytest.mark.long
@pytest.mark.skipif(not whole(), reason="load on three services over TLS needs a machine of its own")
def test_passwords_change_under_load_and_nothing_is_lost(tmp_path: Path) -> None:
    require("redis-server", "rabbitmq-server", "postgres")
    store = postgres_backend.shared_server(tls=True)
    database = store.create_database(postgres_backend.TEMPLATE)
    users = rotating(rabbitmq.shared_server(), redis.shared_server(cluster=False, tls=True), store, database)
    files = {name: tmp_path / f"{name}-url" for name in users}
    for name, service in users.items():
        service.make("old")
        files[name].write_text(service.url("old"))
    settings = {f"{name}_file": file for name, file in files.items()} | {
        "service_ca_file": shared_authority().file,
        "namespace": rabbitmq.new_namespace(),
        "dispatch_num_lanes": FEW_LANES,
        "engine_kind": "echo",
        "engine_echo_step_s": 0.003,
    }
    with running(tmp_path / "data", **PATIENT, **settings) as server:
        with Load(server) as load:
            load.wait_for_more()
            for name, service in users.items():
                service.make("new")
                files[name].write_text(service.url("new"))
                service.remove("old")
                load.wait_for_more()
        assert len(set(load.answers.values())) == 1
        with server.client() as http:
            # A turn that was given up before a worker had it counts as one, and costs nothing; its key names another.
            wanted = NUM_TOKENS * len(load.answers)
            wait_until(lambda: _num_tokens(http) >= wanted, "every turn is in the store")
            assert _num_tokens(http) == wanted, "a turn was run twice"
    for name, service in users.items():
        assert service.url("new") not in server.log, name
        service.remove("new")
    store.drop_database(database)


def _num_tokens(http: httpx.Client) -> int:
    days = http.get("/v1/usage").raise_for_status().json()["data"]
    return sum(each["output_tokens"] for each in days)

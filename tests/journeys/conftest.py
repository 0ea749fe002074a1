import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contracts import postgres_backend
from tests.journeys.server import Server, running
from tests.services import rabbitmq, redis
from tests.services.require import require

Settings = dict[str, Any]
PATIENT: Settings = {"dispatch_accept_timeout_s": 30.0, "service_timeout_s": 20.0}
"""For servers whose services nobody breaks: the cores may be busy."""
FEW_LANES = 4
"""Enough for the tenants of a test; the broker that all tests share has those of every server at once."""


Past = Callable[[str, int], str]


@pytest.fixture
def past() -> Past:
    """The part of an answer that comes past a seq. A byte is a token of these servers: it is all the characters that
    were not complete by then."""
    return lambda text, seq: text[len(text.encode()[:seq].decode(errors="ignore")) :]


@pytest.fixture(scope="session", params=["embedded", pytest.param("services", marks=pytest.mark.services)])
def place(request: pytest.FixtureRequest) -> Callable[[], Settings]:
    """Where servers keep things: each call makes a place of its own, in the process or on the real services."""
    return on_services if request.param == "services" else dict


def on_services() -> Settings:
    """A place of its own on the servers that all tests share."""
    require("redis-server", "rabbitmq-server", "postgres")
    return {
        "namespace": rabbitmq.new_namespace(),
        "queue": rabbitmq.shared_server().url,
        "live": redis.shared_server(cluster=False).url,
        "store": postgres_backend.shared_server().create_database(postgres_backend.TEMPLATE),
        "dispatch_num_lanes": FEW_LANES,
    }


@pytest.fixture(scope="module")
def echo(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that repeats its prompts, shared by a file's journeys that leave it as it was.

    Not by those of all files: a start takes less than half a second of processor time, and an idle server takes that
    in 20 s.
    """
    with running(tmp_path_factory.mktemp("echo") / "data", engine_kind="echo", **PATIENT, **place()) as server:
        yield server


@pytest.fixture(scope="module")
def slow(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same, with time between its tokens."""
    settings = {"engine_kind": "echo", "engine_echo_step_s": 0.003, **PATIENT, **place()}
    with running(tmp_path_factory.mktemp("slow") / "data", **settings) as server:
        yield server


@pytest.fixture(scope="module")
def real(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the default model."""
    with running(tmp_path_factory.mktemp("real") / "data", **PATIENT, **place()) as server:
        yield server


@pytest.fixture
def fresh(place: Callable[[], Settings], tmp_path: Path) -> Iterator["Fresh"]:
    """Servers of the test's own, to be broken at will."""
    with contextlib.ExitStack() as stack:
        yield Fresh(tmp_path / "data", place(), stack)


class Fresh:
    def __init__(self, data_dir: Path, settings: Settings, stack: contextlib.ExitStack) -> None:
        self._data_dir, self._settings, self._stack = data_dir, settings, stack

    def start(self, **settings: object) -> Server:
        """Another server on the same data, whatever became of the one before."""
        chosen = {"engine_kind": "echo", **PATIENT, **self._settings, **settings}
        return self._stack.enter_context(running(self._data_dir, **chosen))

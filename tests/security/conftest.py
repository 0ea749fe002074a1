from collections.abc import Iterator

import pytest

from tests.journeys.server import Server, running
from tests.security.keyring import Keyring, make_keys
from tests.security.rooms import Room, furnished, wait_running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An embedded server whose answers take their time, shared by the tests that leave it as it was."""
    settings = {
        "engine_kind": "echo",
        "engine_echo_step_s": 0.03,
        "engine_max_model_len": 100_000,  # what runs goes on for longer than the tests, however slow they are
        "sessions_busy_wait_s": 0.2,
        "sessions_reader_grace_s": 2,
        "admission_requests_per_minute": 0,
        "gateway_failures_per_minute": 0,
        "grpc_enabled": "true",
        "grpc_port": 0,
    }
    with running(tmp_path_factory.mktemp("rooms") / "data", **settings) as server:
        yield server


@pytest.fixture(scope="module")
def keys(server: Server) -> Keyring:
    return make_keys(server)


@pytest.fixture(scope="module")
def room(server: Server, keys: Keyring) -> Iterator[Room]:
    """What ``keys.mine`` has."""
    with furnished(server, keys.mine) as room:
        wait_running(server, keys, room.named("response_id")["a background response"])
        yield room


@pytest.fixture(scope="module")
def strangers_room(server: Server, keys: Keyring) -> Iterator[Room]:
    """What ``keys.foreign`` has."""
    with furnished(server, keys.foreign) as room:
        yield room

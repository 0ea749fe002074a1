"""Files, batches, vectors and WebSockets at a server of several processes: each may be killed."""

import json
import os
import signal
from collections.abc import Callable, Iterator

import pytest
from openai import OpenAI
from websockets.sync.client import ClientConnection, connect

from tests.journeys.conftest import PATIENT, Settings
from tests.journeys.processes import front_pids, holder, holder_of
from tests.journeys.server import Server, running, wait_until
from tests.journeys.test_batches import chat_line, content, jsonl, num_completed, submit, wait_ended
from tests.journeys.test_embeddings import ECHO as VECTORS
from tests.journeys.test_embeddings import TEXTS, expected
from tests.journeys.test_socket import LONG, events

NUM_LINES = 60
BATCHES: Settings = {"batches_lease_s": 1.0, "batches_poll_s": 0.1, "batches_lines_in_flight": 4}


@pytest.fixture(scope="module")
def pair(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of two fronts, for the tests of this file; it replaces those that they kill."""
    settings = {"engine_kind": "echo", "gateway_processes": 2, "engine_echo_step_s": 0.01, **PATIENT, **BATCHES}
    with running(tmp_path_factory.mktemp("pair") / "data", **settings, **place()) as server:
        yield server


def each_front_is_killed(url: str, key: str, fronts: Callable[[], list[int]]) -> None:
    """A batch outlives every front that it began with, whichever of them ran it."""
    with OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=8) as client:
        batch_id = submit(client, [chat_line(number) for number in range(NUM_LINES)])
        for number, front in enumerate(both(fronts), 1):
            enough = number * NUM_LINES // 4
            wait_until(lambda: num_completed(client, batch_id) >= enough, f"{enough} lines are done")  # noqa: B023
            assert num_completed(client, batch_id) < NUM_LINES, "the batch was over before the fronts died"
            os.kill(front, signal.SIGKILL)
            wait_until(lambda: front not in both(fronts), "the killed front is replaced")  # noqa: B023
        batch = wait_ended(client, batch_id)
        assert batch.status == "completed"
        output = content(client, batch.output_file_id)
    assert [line["custom_id"] for line in output] == [f"line-{number}" for number in range(NUM_LINES)]
    assert batch.error_file_id is None


def a_socket_of_a_killed_front_is_resumed(url: str, key: str, fronts: Callable[[], list[int]]) -> None:
    """The rest of a response comes from the other front, exactly."""
    with opened(url, key) as line:
        line.send(json.dumps({"type": "response.create", **LONG}))
        got = [json.loads(line.recv(timeout=60)) for _ in range(30)]
        os.kill(holder_of(line.socket, both(fronts)), signal.SIGKILL)
    after, response_id = got[-1]["sequence_number"], got[0]["response"]["id"]
    with opened(url, key, f"?response_id={response_id}&starting_after={after}") as line:
        got += events(line)
    assert [event["sequence_number"] for event in got] == list(range(len(got)))
    assert got[-1]["type"] == "response.incomplete"
    said = "".join(event["delta"] for event in got if event["type"] == "response.output_text.delta")
    assert got[-1]["response"]["output"][0]["content"][0]["text"] == said


def opened(url: str, key: str, query: str = "") -> ClientConnection:
    address = url.replace("http://", "ws://") + "/v1/responses" + query
    return connect(address, additional_headers={"Authorization": f"Bearer {key}"}, open_timeout=60)


def both(fronts: Callable[[], list[int]]) -> list[int]:
    wait_until(lambda: len(fronts()) == 2, "both fronts are there")
    return fronts()


def test_a_batch_outlives_each_of_the_processes(pair: Server) -> None:
    each_front_is_killed(pair.url, pair.key, lambda: front_pids(pair.pid))


def test_a_file_that_one_process_took_is_read_at_every_other(pair: Server) -> None:
    data = jsonl([chat_line(number) for number in range(3)])
    fronts, met = both(lambda: front_pids(pair.pid)), set[int]()
    with pair.client() as http:
        form = {"purpose": (None, b"batch"), "file": ("a.jsonl", data)}
        file_id = http.post("/v1/files", files=form).raise_for_status().json()["id"]

    def is_read_at_both() -> bool:
        with pair.client() as http, http.stream("GET", f"/v1/files/{file_id}/content") as reply:
            met.add(holder(reply, fronts))
            assert reply.read() == data
        return met == set(fronts)

    wait_until(is_read_at_both, "both have served it")


def test_a_socket_of_a_killed_process_is_resumed_at_the_other(pair: Server) -> None:
    a_socket_of_a_killed_front_is_resumed(pair.url, pair.key, lambda: front_pids(pair.pid))


def test_every_process_makes_the_same_vectors(
    place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = {**VECTORS, "gateway_processes": 2, **PATIENT, **place()}
    with running(tmp_path_factory.mktemp("vectors") / "data", **settings) as server:
        fronts, met = both(lambda: front_pids(server.pid)), set[int]()

        def is_made_at_both() -> bool:
            ask = {"model": "vectors", "input": TEXTS}
            with server.client() as http, http.stream("POST", "/v1/embeddings", json=ask) as reply:
                met.add(holder(reply, fronts))
                found = json.loads(reply.read())
            assert [tuple(each["embedding"]) for each in found["data"]] == [expected(text) for text in TEXTS]
            return met == set(fronts)

        wait_until(is_made_at_both, "both have served it")

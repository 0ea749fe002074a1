"""Processes that die in the middle of an answer: a pause, and nothing else."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from axon.engine.echo import HANGING
from tests.journeys.conftest import Fresh
from tests.journeys.server import Server, running, wait_until
from tests.journeys.sse import Piece, pieces, text_of
from tests.journeys.test_resume import ask, read_on, read_some


def kill_engine(server: Server) -> int:
    [engine] = server.engine_pids()
    os.kill(engine, signal.SIGKILL)
    return engine


def read_killing(server: Server, body: dict[str, object], at_tokens: tuple[int, ...]) -> list[Piece]:
    """Reads a whole stream over one connection while an engine is killed under it at each of these tokens, however many
    tokens come in a piece: a slow reader is given several."""
    got: list[Piece] = []
    killed: list[int] = []

    def alive() -> list[int]:
        return [engine for engine in server.engine_pids() if engine not in killed]

    with server.client() as http, http.stream("POST", "/v1/completions", json=body) as reply:
        for piece in pieces(reply.iter_lines()):
            got.append(piece)
            if len(killed) < len(at_tokens) and max(len(got), piece.seq) >= at_tokens[len(killed)]:
                wait_until(alive, "an engine runs")
                [engine] = alive()
                killed.append(engine)
                os.kill(engine, signal.SIGKILL)
    return got


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 1, "seed": 11}], ids=["greedy", "seeded"])
def test_the_same_http_stream_goes_on_after_the_engine_was_killed(fresh: Fresh, sampling: dict[str, object]) -> None:
    server = fresh.start(engine_echo_step_s=0.015)  # a slow reader must not be behind the end of the answer
    with server.client() as http:
        undisturbed = http.post("/v1/completions", json=ask(stream=False, **sampling)).json()["choices"][0]["text"]
    got = read_killing(server, ask(**sampling), at_tokens=(30, 120))
    assert text_of(got) == undisturbed
    assert server.metric("axon_failovers_total") == 2
    assert got[-1].finish == "length"


def test_a_request_that_crashes_the_engine_is_ended_and_its_neighbours_are_answered(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.002)
    with server.client() as http:
        undisturbed = http.post("/v1/completions", json=ask(max_tokens=100, stream=False)).json()["choices"][0]
        with http.stream("POST", "/v1/completions", json=ask(max_tokens=100)) as neighbour:
            stream = pieces(neighbour.iter_lines())
            first = next(stream)
            poison = http.post("/v1/completions", json={"model": "echo", "prompt": [255, 255, 255]})
            rest = list(stream)
        assert poison.status_code == 500
        assert poison.json()["error"]["code"] == "worker_crash"
        assert (text_of([first, *rest]), rest[-1].finish) == (undisturbed["text"], undisturbed["finish_reason"])
        again = http.post(
            "/v1/completions", json={"model": "echo", "prompt": "still there", "max_tokens": 20, "temperature": 0}
        )
        assert again.json()["choices"][0]["text"] == "still there"


def test_a_request_that_hangs_the_engine_is_ended_and_its_neighbours_are_answered(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.002, worker_step_timeout_s=1, worker_engine_start_timeout_s=10)
    with server.client() as http:
        undisturbed = http.post("/v1/completions", json=ask(max_tokens=100, stream=False)).json()["choices"][0]
        with http.stream("POST", "/v1/completions", json=ask(max_tokens=100)) as neighbour:
            stream = pieces(neighbour.iter_lines())
            first = next(stream)
            hanging = http.post("/v1/completions", json={"model": "echo", "prompt": list(HANGING)})
            rest = list(stream)
        assert hanging.json()["error"]["code"] == "worker_crash"
        assert text_of([first, *rest]) == undisturbed["text"]


@pytest.mark.everywhere
def test_a_turn_that_was_accepted_is_finished_after_the_server_was_killed(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.01)
    with server.client() as http:
        done = http.post("/v1/completions", json=ask(stream=False, max_tokens=30)).json()
    stream_id, before = read_some(server, ask(temperature=1, seed=3), num_pieces=20)
    server.kill()

    server = fresh.start(engine_echo_step_s=0.001)
    rest = read_on(server, stream_id, after=before[-1].seq)
    with server.client() as http:
        undisturbed = http.post("/v1/completions", json=ask(stream=False, temperature=1, seed=3)).json()
    assert text_of(before) + text_of(rest) == undisturbed["choices"][0]["text"]
    assert text_of(read_on(server, done["id"], after=0)) == done["choices"][0]["text"]


def test_what_a_long_answer_has_said_outlives_a_power_cut_and_is_not_made_again(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    settings = {"engine_kind": "echo", "worker_checkpoint_s": 0.1}
    with running(data_dir, engine_echo_step_s=0.01, **settings) as server:
        stream_id, _ = read_some(server, ask(temperature=1, seed=3), num_pieces=60)
        server.kill()

    def num_written() -> int:
        with closing(sqlite3.connect(data_dir / "axon.db")) as database:
            [(num_tokens,)] = database.execute("SELECT output_tokens FROM turns WHERE id = ?", [stream_id]).fetchall()
        return int(num_tokens)

    written = num_written()
    assert 0 < written < 300
    with running(data_dir, engine_echo_step_s=5.0, **settings) as server:
        # Its engine takes five seconds for a token, and cannot have made these.
        [piece] = read_on(server, stream_id, after=written - 1, num_pieces=1)
        assert piece.seq >= written
        server.kill()
    with running(data_dir, **settings) as server, server.client() as http:
        undisturbed = http.post("/v1/completions", json=ask(stream=False, temperature=1, seed=3)).json()
        assert text_of(read_on(server, stream_id, after=0)) == undisturbed["choices"][0]["text"]


@pytest.mark.everywhere
def test_keys_survive_a_killed_server(fresh: Fresh) -> None:
    server = fresh.start()
    key = server.key
    assert key in server.screen
    server.kill()
    server = fresh.start()
    assert server.key == key
    assert key not in server.screen
    with server.client() as http:
        assert http.get("/v1/models").status_code == 200


def test_sigterm_lets_running_answers_end_and_takes_no_new_ones(fresh: Fresh) -> None:
    server = fresh.start(engine_echo_step_s=0.03)
    with server.client() as http, http.stream("POST", "/v1/completions", json=ask(max_tokens=300)) as reply:
        stream = pieces(reply.iter_lines())
        first = next(stream)
        os.kill(server.pid, signal.SIGTERM)
        with server.client() as other:
            short = {**ask(max_tokens=1), "stream": False}
            wait_until(lambda: other.get("/readyz").status_code == 503, "not ready while draining")
            wait_until(lambda: other.post("/v1/completions", json=short).status_code == 503, "takes nothing new")
            refused = other.post("/v1/completions", json=short)
            assert refused.json()["error"]["code"] == "draining"
            assert refused.headers["retry-after-ms"]
            assert other.get("/livez").status_code == 200
        rest = list(stream)
    assert rest[-1].finish == "length"
    assert len(text_of([first, *rest]).encode()) >= 290
    assert server.stop() == 0

"""One server of several processes on one port: it answers as one, and what one of them loses the others pick up."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from axon.client import resumed
from tests.journeys.conftest import PATIENT, Fresh, Settings
from tests.journeys.processes import front_pids, holder, is_alive
from tests.journeys.server import Server, running, wait_until
from tests.journeys.sse import pieces, text_of

PROMPT = "Many hands make light work. " * 12
BODY: dict[str, Any] = {"model": "echo", "prompt": PROMPT, "max_tokens": 300, "ignore_eos": True, "temperature": 0}
SLOW: Settings = {"engine_echo_step_s": 0.01}


@pytest.fixture(scope="module")
def pair(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of two fronts, for the tests of this file; it replaces those that they kill."""
    settings = {"engine_kind": "echo", "gateway_processes": 2, **SLOW, **PATIENT, **place()}
    with running(tmp_path_factory.mktemp("pair") / "data", **settings) as server:
        yield server


def fronts_of(server: Server) -> list[int]:
    """Both fronts, when both are there and serve."""
    wait_until(lambda: len(front_pids(server.pid)) == 2 and is_serving(server), "both fronts serve")
    return front_pids(server.pid)


def is_serving(server: Server) -> bool:
    """Whether every front accepts connections, so that the parent hands none over."""
    served: set[int] = set()
    for _ in range(24):
        with server.client() as http, http.stream("GET", "/v1/models") as reply:
            served.add(holder(reply, front_pids(server.pid)))
        if len(served) == 2:
            return True
    return False


def stream_at(server: Server, front: int, http: httpx.Client) -> Iterator[Any]:
    """A stream whose connection this front has."""
    while True:
        sending = http.build_request("POST", "/v1/completions", json={**BODY, "stream": True})
        reply = http.send(sending, stream=True)
        if holder(reply, [*front_pids(server.pid)]) == front:
            return pieces(reply.iter_lines())
        reply.close()


def test_clients_of_one_port_meet_both_processes_and_the_metrics_are_their_sum(pair: Server) -> None:
    fronts = fronts_of(pair)
    before = pair.metric("axon_requests_total")
    met = set()
    for _ in range(24):
        with pair.client() as http, http.stream("POST", "/v1/completions", json={**BODY, "max_tokens": 2}) as reply:
            met.add(holder(reply, fronts))
            assert reply.read()
    assert met == set(fronts)
    wait_until(lambda: pair.metric("axon_requests_total") - before == 24, "every request is counted once")
    assert pair.metric("axon_build_info") == 1
    assert pair.metric("axon_leads") == 1
    assert httpx.get(pair.metrics_url.replace("/metrics", "/readyz"), timeout=60).status_code == 200
    assert httpx.get(pair.metrics_url.replace("/metrics", "/livez"), timeout=60).status_code == 200
    assert "served by 2 processes" in pair.screen


def test_an_openai_client_is_served_by_either_process(pair: Server) -> None:
    fronts_of(pair)
    answers = set()
    for _ in range(6):
        with openai.OpenAI(base_url=f"{pair.url}/v1", api_key=pair.key) as api:
            messages: Any = [{"role": "user", "content": PROMPT}]
            chat = api.chat.completions.create(model="echo", messages=messages, max_tokens=20, temperature=0)
            answers.add(chat.choices[0].message.content)
    assert len(answers) == 1


def test_a_stream_of_a_killed_process_is_resumed_at_the_other_and_its_counters_stay(pair: Server) -> None:
    fronts = fronts_of(pair)
    with openai.OpenAI(base_url=f"{pair.url}/v1", api_key=pair.key) as api:
        whole = api.completions.create(model="echo", prompt=PROMPT, max_tokens=300, temperature=0).choices[0].text
        counted = pair.metric("axon_requests_total")
        stream = api.completions.create(model="echo", prompt=PROMPT, max_tokens=300, temperature=0, stream=True)
        killed = holder(stream.response, fronts)
        got = []
        for chunk in resumed(api, stream):
            got.append(chunk.choices[0].text)
            if len(got) == 20:
                os.kill(killed, signal.SIGKILL)
    assert "".join(got) == whole
    wait_until(lambda: len(front_pids(pair.pid)) == 2, "the killed front is replaced")
    assert killed not in front_pids(pair.pid)
    assert pair.metric("axon_requests_total") >= counted
    assert "front.ended" in pair.log


def test_a_killed_process_takes_only_its_own_connections_with_it(pair: Server) -> None:
    one, other = fronts_of(pair)
    with pair.client() as mine, pair.client() as others:
        going_on, broken = stream_at(pair, other, others), stream_at(pair, one, mine)
        begun = [next(going_on)]
        next(broken)
        os.kill(one, signal.SIGKILL)
        with pytest.raises((httpx.TransportError, AssertionError)):
            list(broken)
        with pair.client() as new:  # the socket of the dead one still takes connections, which the other one serves
            for _ in range(8):
                reply = httpx.get(f"{pair.url}/v1/models", headers=new.headers, timeout=60)
                assert reply.status_code == 200
        begun += going_on
    assert begun[-1].finish == "length"
    assert len(text_of(begun)) == 300


def test_no_request_is_lost_while_one_process_after_the_other_is_restarted(pair: Server) -> None:
    """A front that is told to stop by itself ends its answers and is replaced; new connections go to the other."""
    headers = {"Authorization": f"Bearer {pair.key}"}
    for front in fronts_of(pair):
        os.kill(front, signal.SIGTERM)
        while is_alive(front) or len(front_pids(pair.pid)) < 2:
            reply = httpx.post(
                f"{pair.url}/v1/completions", json={**BODY, "max_tokens": 2}, headers=headers, timeout=60
            )
            assert reply.status_code == 200, reply.text


def test_a_process_that_hangs_is_replaced(pair: Server) -> None:
    hung, _ = fronts_of(pair)
    os.kill(hung, signal.SIGSTOP)
    wait_until(lambda: not is_alive(hung), "the hung front is killed", timeout_s=60)
    assert hung not in fronts_of(pair)


def test_a_second_server_cannot_take_the_port_beside_the_first(pair: Server, tmp_path: Path) -> None:
    port = pair.url.rpartition(":")[2]
    folder = tmp_path / "second"
    ran = pair.axon("serve", "--engine", "echo", "--port", port, "--data-dir", str(folder), "--processes", "2")
    assert ran.returncode == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in ran.stderr


def test_a_stop_lets_answers_end_and_leaves_no_process(fresh: Fresh) -> None:
    server = fresh.start(gateway_processes=2, **SLOW)
    fronts = fronts_of(server)
    with server.client() as http, http.stream("POST", "/v1/completions", json={**BODY, "stream": True}) as reply:
        stream = pieces(reply.iter_lines())
        got = [next(stream)]
        os.kill(server.pid, signal.SIGTERM)
        wait_until(
            lambda: httpx.get(server.metrics_url.replace("/metrics", "/readyz"), timeout=60).status_code == 503,
            "it drains",
        )
        got += stream
    assert got[-1].finish == "length"
    assert len(text_of(got)) == 300
    assert server.stop() == 0
    assert not [pid for pid in fronts if is_alive(pid)]
    assert not (server.data_dir / "fronts.sock").exists()


def test_a_second_signal_ends_all_processes_at_once(fresh: Fresh) -> None:
    server = fresh.start(gateway_processes=2, engine_echo_step_s=1.0)
    fronts = fronts_of(server)
    with server.client() as http, http.stream("POST", "/v1/completions", json={**BODY, "stream": True}) as reply:
        next(pieces(reply.iter_lines()))
        os.kill(server.pid, signal.SIGTERM)
        wait_until(
            lambda: httpx.get(server.metrics_url.replace("/metrics", "/readyz"), timeout=60).status_code == 503,
            "it drains",
        )
        assert server.stop() == 0
    assert not [pid for pid in fronts if is_alive(pid)]


def test_the_hubs_death_ends_its_processes_and_a_stream_goes_on_after_a_restart(fresh: Fresh) -> None:
    server = fresh.start(gateway_processes=2, **SLOW)
    fronts = fronts_of(server)
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=server.key) as api:
        whole = api.completions.create(model="echo", prompt=PROMPT, max_tokens=200, temperature=0).choices[0].text
        stream = api.completions.create(model="echo", prompt=PROMPT, max_tokens=200, temperature=0, stream=True)
        got = []
        for chunk in resumed(api, stream):
            got.append(chunk.choices[0].text)
            if len(got) == 10:
                server.kill()
                wait_until(lambda: not any(map(is_alive, fronts)), "the fronts end with their hub")
                server.start_again()
    assert "".join(got) == whole

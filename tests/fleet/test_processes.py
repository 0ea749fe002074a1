"""A gateway of several processes: one port, one parent, and a fleet that does not mind."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest

from axon.client import resumed
from tests.fleet.conftest import fleets
from tests.fleet.fleet import Fleet
from tests.journeys.processes import front_pids, holder, is_alive
from tests.journeys.server import wait_until
from tests.journeys.sse import pieces, text_of
from tests.journeys.test_processes_apis import BATCHES, a_socket_of_a_killed_front_is_resumed, each_front_is_killed

pytestmark = pytest.mark.services
PROMPT = "Four hands on one keyboard. " * 12
BODY = {"model": "echo", "prompt": PROMPT, "max_tokens": 300, "ignore_eos": True}


@pytest.fixture(scope="module")
def shared() -> Iterator[Fleet]:
    """One gateway of two processes, one worker."""
    with fleets() as make:
        yield make(engine_echo_step_s=0.01, gateway_processes=2, **BATCHES).start(gateways=1, workers=1)


@pytest.fixture
def fleet(shared: Fleet) -> Fleet:
    """The same for all tests; a gateway that a test has ended is started again."""
    [gateway] = shared.gateways
    if not gateway.alive:
        gateway.start()
    return shared


def both(fleet: Fleet) -> list[int]:
    wait_until(lambda: len(front_pids(fleet.gateways[0].pid)) == 2, "both fronts are there")
    return front_pids(fleet.gateways[0].pid)


def test_both_processes_serve_and_their_metrics_are_summed_and_a_killed_one_is_resumed_at_the_other(
    fleet: Fleet,
) -> None:
    [gateway], fronts = fleet.gateways, both(fleet)
    met: set[int] = set()
    before = gateway.metric("axon_requests_total")
    for _ in range(24):
        with fleet.client(gateway.url) as http, http.stream("GET", "/v1/models") as reply:
            met.add(holder(reply, fronts))
            assert reply.read()
    assert met == set(fronts)
    wait_until(lambda: gateway.metric("axon_requests_total") - before == 24, "every request is counted once")
    assert gateway.metric("axon_workers") == 1
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=fleet.key) as api:
        whole = api.completions.create(model="echo", prompt=PROMPT, max_tokens=300, temperature=0).choices[0].text
        counted = gateway.metric("axon_requests_total")
        stream = api.completions.create(model="echo", prompt=PROMPT, max_tokens=300, temperature=0, stream=True)
        killed = holder(stream.response, fronts)
        got = []
        for chunk in resumed(api, stream):
            got.append(chunk.choices[0].text)
            if len(got) == 20:
                os.kill(killed, signal.SIGKILL)
    assert "".join(got) == whole
    assert killed not in both(fleet)
    assert gateway.metric("axon_requests_total") >= counted
    assert gateway.probe("/readyz") == 200


def test_a_batch_and_a_socket_outlive_the_processes_that_had_them(fleet: Fleet) -> None:
    [gateway] = fleet.gateways
    for check in (each_front_is_killed, a_socket_of_a_killed_front_is_resumed):
        check(gateway.url, fleet.key, lambda: both(fleet))


def test_a_stop_drains_all_processes(fleet: Fleet) -> None:
    [gateway], fronts = fleet.gateways, both(fleet)
    with fleet.client(gateway.url) as http, http.stream("POST", "/v1/completions", json={**BODY, "stream": True}) as it:
        stream = pieces(it.iter_lines())
        got = [next(stream)]
        gateway.send(signal.SIGTERM)
        wait_until(lambda: gateway.probe("/readyz") == 503, "it is not ready any more")
        wait_until(lambda: refused(gateway.url), "it takes no connection any more")
        got += stream
    assert got[-1].finish == "length"
    assert len(text_of(got)) == 300
    assert gateway.wait() == 0
    assert not [pid for pid in fronts if is_alive(pid)]


def test_a_second_signal_hurries_all_processes(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=1.0, gateway_processes=2).start(gateways=1, workers=1)
    [gateway], fronts = fleet.gateways, both(fleet)
    with fleet.client(gateway.url) as http, http.stream("POST", "/v1/completions", json={**BODY, "stream": True}) as it:
        next(pieces(it.iter_lines()))
        gateway.send(signal.SIGTERM)
        wait_until(lambda: gateway.probe("/readyz") == 503, "it is not ready any more")
        gateway.send(signal.SIGTERM)
        assert gateway.wait() == 0
    assert not [pid for pid in fronts if is_alive(pid)]
    fleet.workers[0].kill()  # it would wait for the end of the answer


def test_the_parents_death_ends_its_processes(fleet: Fleet) -> None:
    [gateway], fronts = fleet.gateways, both(fleet)
    gateway.kill()
    wait_until(lambda: not any(map(is_alive, fronts)), "the fronts end")
    wait_until(lambda: refused(gateway.url), "nobody has the port")


def test_no_request_is_lost_while_one_process_after_the_other_is_restarted(fleet: Fleet) -> None:
    """The clients send nothing twice, and each request has a connection of its own."""
    [gateway] = fleet.gateways
    over, answers = threading.Event(), Counter[str]()
    headers = {"Authorization": f"Bearer {fleet.key}"}

    def ask() -> None:
        while not over.wait(0.02):  # the fronts that start need the cores too
            body = {**BODY, "max_tokens": 2}
            reply = httpx.post(f"{gateway.url}/v1/completions", json=body, headers=headers, timeout=60)
            answers["200" if reply.status_code == 200 else f"{reply.status_code} {reply.text}"] += 1

    with ThreadPoolExecutor() as clients:
        asking = [clients.submit(ask) for _ in range(3)]
        try:
            for front in both(fleet):
                os.kill(front, signal.SIGTERM)
                wait_until(lambda front=front: not is_alive(front), "it ends")  # type: ignore[misc]
                both(fleet)
        finally:
            over.set()
        for each in asking:
            each.result()
    assert set(answers) == {"200"}, answers


def test_a_gateway_whose_processes_cannot_start_says_why_and_ends(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(gateway_processes=2)
    gateway = fleet.make("gateway", live="redis://127.0.0.1:1", lifecycle_start_wait_s=0.1).start(wait=False)
    assert gateway.wait() == 1, gateway.log
    assert "axon: " in gateway.log
    assert "127.0.0.1:1" in gateway.log
    assert "Traceback" not in gateway.log


def refused(url: str) -> bool:
    try:
        httpx.get(f"{url}/livez", timeout=5)  # one that was taken and is not served says neither
    except httpx.ConnectError:
        return True
    except httpx.TransportError:
        return False
    return False

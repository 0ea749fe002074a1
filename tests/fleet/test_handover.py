"""A worker of a real fleet is told to end in the middle of answers: another goes on with them, and nobody notices."""

from collections.abc import Callable

import pytest

from tests.fleet.fleet import Fleet
from tests.journeys.server import wait_until
from tests.journeys.sse import pieces, text_of

pytestmark = pytest.mark.services

BODY = {"model": "echo", "prompt": "To be continued elsewhere. " * 20, "max_tokens": 1000, "ignore_eos": True}


def test_a_worker_that_is_told_to_end_does_not_wait_for_its_long_answers(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=0.01, worker_linger_s=0.5, lifecycle_drain_s=120).start(gateways=1, workers=1)
    [first] = fleet.workers
    with fleet.client() as http:
        body = {**BODY, "temperature": 1, "seed": 5}
        undisturbed = http.post("/v1/completions", json=body).json()["choices"][0]["text"]
        with http.stream("POST", "/v1/completions", json={**body, "stream": True}) as reply:
            stream = pieces(reply.iter_lines())
            got = [next(stream) for _ in range(20)]
            second = fleet.add("worker")
            assert first.stop() == 0
            wait_until(lambda: second.metric("axon_requests_running") == 1, "the other goes on")
            got += list(stream)
        assert text_of(got) == undisturbed
        assert [piece.seq for piece in got if piece.text] == sorted({piece.seq for piece in got if piece.text})
        assert got[-1].finish == "length"
    assert second.metric("axon_fenced_writes_total") == 0


def test_a_turn_that_goes_on_is_answered_where_the_last_one_was(fresh: Callable[..., Fleet]) -> None:
    fleet = fresh(engine_echo_step_s=0.005).start(gateways=1, workers=2)
    with fleet.client() as http:
        messages = [{"role": "user", "content": "Where were we? " * 20}]
        cached = []
        for _ in range(5):
            body = {"model": "echo", "messages": messages, "max_tokens": 40}
            answer = http.post("/v1/chat/completions", json=body).json()
            cached.append(answer["usage"]["prompt_tokens_details"]["cached_tokens"])
            messages.append(answer["choices"][0]["message"])
            messages.append({"role": "user", "content": "And then?"})
        assert cached[0] == 0
        assert cached == sorted(set(cached)), "each turn found the one before it"
    assert sorted(worker.metric("axon_tokens_total") > 0 for worker in fleet.workers) == [False, True]

"""Traces of a real fleet: one for each request, whole after a worker's death, a hand-over and another gateway."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.fleet.conftest import fleets
from tests.fleet.fleet import Fleet
from tests.journeys.server import wait_until
from tests.journeys.sse import pieces
from tests.observability.trace_check import REQUEST, TURN, check_sums, named, whole_trace
from tests.services.otlp import Receiver, receiving

pytestmark = pytest.mark.services

LEDGER = {"x-axon-ledger": "true"}
SECRET = "the canary sings at noon"
CHAT = {"model": "echo", "messages": [{"role": "user", "content": SECRET}], "max_tokens": 20}
LONG = {
    "model": "echo",
    "prompt": f"{SECRET}, and goes on. " * 20,
    "max_tokens": 400,
    "ignore_eos": True,
    "stream": True,
}


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture(scope="module")
def fleet(receiver: Receiver) -> Iterator[Fleet]:
    """Two gateways, one worker, one control; every request is exported by HTTP."""
    settings = {"traces_gather_s": 0.1, "engine_echo_step_s": 0.01, "worker_linger_s": 0.2, "lifecycle_drain_s": 120}
    with fleets() as make:
        yield make(**settings, traces_endpoint=receiver.url, traces_sample_ratio=1.0).start(gateways=2, workers=1)


def test_every_kind_of_request_is_one_trace(fleet: Fleet, receiver: Receiver) -> None:
    with fleet.client() as http:
        chat = http.post("/v1/chat/completions", json=CHAT, headers=LEDGER).json()
        two = http.post("/v1/chat/completions", json={**CHAT, "n": 2}, headers=LEDGER).json()
        body = {"model": "echo", "input": SECRET, "max_output_tokens": 20}
        response = http.post("/v1/responses", json=body, headers=LEDGER).json()
        behind = http.post("/v1/responses", json={**body, "background": True}).json()
        refused = http.post("/v1/chat/completions", json={**CHAT, "model": "nobody"})

        def is_done() -> bool:
            return http.get(f"/v1/responses/{behind['id']}").json()["status"] in ("completed", "incomplete")

        wait_until(is_done, "the response in the background has ended")
        done = http.get(f"/v1/responses/{behind['id']}", headers=LEDGER).json()
    for answer in (chat, two, response):
        spans = whole_trace(receiver, answer["id"], "chat echo", *TURN, *REQUEST)
        check_sums(spans, answer["axon"]["ledger"])
        assert {span.service for span in spans} == {"axon-gateway", "axon-worker"}
    check_sums(whole_trace(receiver, behind["id"], "chat echo", *TURN), done["axon"]["ledger"])
    [turn] = named(receiver.of_turn(two["id"]), "chat echo")
    assert turn.attributes["gen_ai.request.choice.count"] == 2
    assert turn.attributes["gen_ai.response.finish_reasons"] == ("length", "length")
    asked = refused.headers["x-request-id"]
    wait_until(lambda: asked in str(receiver.spans), "a refused request is a trace too")
    _check_canary(fleet, receiver)


def test_a_reader_that_comes_back_to_another_gateway_is_in_the_same_trace(fleet: Fleet, receiver: Receiver) -> None:
    one, other = fleet.gateways
    with fleet.client(one.url) as http, http.stream("POST", "/v1/completions", json=LONG) as reply:
        stream = pieces(reply.iter_lines())
        got = [next(stream) for _ in range(10)]
    stream_id = got[0].event["id"]
    path = f"/v1/streams/{stream_id}?after={got[-1].seq}"
    with fleet.client(other.url) as http, http.stream("GET", path, headers=LEDGER) as reply:
        rest = list(pieces(reply.iter_lines()))
    spans = whole_trace(receiver, stream_id, "text_completion echo", *TURN, *REQUEST, requests=2)
    check_sums(spans, rest[-1].event["axon"]["ledger"])
    first, second = named(spans, "gateway.request")
    assert "axon.resumed" not in first.attributes
    assert second.attributes["axon.resumed"] is True
    assert len(named(spans, "stream.deliver")) == 2


@pytest.mark.parametrize("how", ["killed", "handed_over"])
def test_another_workers_attempt_is_linked_to_the_last_one(fleet: Fleet, receiver: Receiver, how: str) -> None:
    [old] = [worker for worker in fleet.workers if worker.alive]
    caller = {"traceparent": f"00-{uuid.uuid4().hex}-{'6' * 16}-00"}
    with fleet.client() as http, ExitStack() as stack:
        answers = []
        for headers in ({}, caller):
            asked = http.stream("POST", "/v1/completions", json=LONG, headers={**LEDGER, **headers})
            stream = pieces(stack.enter_context(asked).iter_lines())
            answers.append((next(stream), stream))
        new = fleet.add("worker", traces_endpoint=receiver.grpc_target, traces_protocol="grpc")
        if how == "killed":
            old.kill()
        else:
            assert old.stop() == 0
        ends = [(first.event["id"], [*stream][-1].event["axon"]["ledger"]) for first, stream in answers]
    assert new.alive
    for (turn_id, ledger), outer in zip(ends, ("", "6" * 16), strict=True):
        spans = whole_trace(receiver, turn_id, "text_completion echo", *TURN, *REQUEST, outer=outer)
        check_sums(spans, ledger)
        first, second = named(spans, "attempt")
        assert ledger["attempts"] == 2
        assert second.attributes["axon.attempt.cause"] == ("lost" if how == "killed" else "handed_over")
        for name in ("axon.worker", "axon.worker.incarnation"):
            assert first.attributes[name] != second.attributes[name]
        assert [span.attributes.get("axon.replay", False) for span in named(spans, "engine.prefill")] == [False, True]
        rebuilt = {span.attributes.get("axon.rebuilt.reason", "") for span in spans}
        assert rebuilt == ({"failed_over"} if outer else {""}), "the unsampled one is made after its end, and says so"
    _check_canary(fleet, receiver)


def _check_canary(fleet: Fleet, receiver: Receiver) -> None:
    said = str(receiver.spans)
    assert SECRET not in said
    assert fleet.key not in said

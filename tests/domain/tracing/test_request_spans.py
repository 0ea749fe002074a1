"""The spans of a request at a gateway: under its turn's, or under its caller's where it has none."""

from axon.domain.billing.ledger import Ledger
from axon.domain.tracing.context import TraceContext, turn_span_id
from axon.domain.tracing.request_spans import RequestSteps, reason_of, request_spans

OWN = TraceContext("a" * 32, "b" * 16, False)
TURNS = TraceContext("c" * 32, "d" * 16, True)


def request(context: TraceContext = OWN, *, is_called: bool = False) -> RequestSteps:
    return RequestSteps(context=context, span_id="e" * 16, arrived=10.0, is_called=is_called)


def test_a_request_without_a_turn_is_under_its_caller() -> None:
    [alone] = request_spans(request(), {}, ended=11.0)
    [called] = request_spans(request(is_called=True), {}, ended=11.0)
    assert (alone.parent_id, called.parent_id) == ("", "b" * 16)
    assert alone.seconds == 1.0


def test_a_request_is_in_the_trace_of_its_turn() -> None:
    steps = request()
    turn = steps.turn("resp_1")
    turn.context, turn.is_new = TURNS, True
    turn.publishing, turn.published, turn.first_chunk = 10.5, 10.6, 10.8
    own, publish, deliver = request_spans(steps, {}, ended=12.0)
    assert {span.trace_id for span in (own, publish, deliver)} == {TURNS.trace_id}
    assert own.parent_id == turn_span_id("resp_1")
    assert (publish.name, publish.parent_id) == ("job.publish", own.span_id)
    assert (deliver.name, round(deliver.seconds, 6)) == ("stream.deliver", 1.2)
    assert "axon.resumed" not in own.attributes


def test_a_request_that_came_back_says_so() -> None:
    steps = request()
    steps.turn("resp_1").context = TURNS
    [own] = request_spans(steps, {}, ended=12.0)
    assert own.attributes["axon.resumed"] is True


def test_several_turns_of_one_request_have_steps_of_their_own() -> None:
    steps = request()
    for turn_id in ("a", "b"):
        turn = steps.turn(turn_id)
        turn.context, turn.publishing, turn.published = TURNS, 10.5, 10.6
    spans = request_spans(steps, {}, ended=12.0)
    assert len({span.span_id for span in spans}) == 3
    assert steps.turn("a") is steps.turn("a")


def test_what_is_exported() -> None:
    assert reason_of(request(TURNS), 200, slow_s=5.0) == ""
    assert reason_of(request(), 200, slow_s=5.0) is None
    assert reason_of(request(), 503, slow_s=5.0) == "failed"
    steps = request()
    turn = steps.turn("a")
    turn.context = OWN
    assert reason_of(steps, 200, slow_s=5.0) is None
    turn.terminal, turn.ledger = "completed", Ledger(attempts=2)
    assert reason_of(steps, 200, slow_s=5.0) == "failed_over"
    turn.context = TURNS
    assert reason_of(steps, 200, slow_s=5.0) == ""

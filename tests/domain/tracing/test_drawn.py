"""A trace as it is shown: the turn first, each span under its own, seconds from the request's arrival."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given

from axon.domain.tracing.drawn import Drawn, drawn, step_seconds
from axon.domain.turn import Turn, TurnState
from tests.domain.tracing.turns import turn_of, turns


@given(turns)
def test_the_steps_of_a_turn_add_up_to_its_whole(turn: Turn) -> None:
    shown = drawn(turn)
    assert turn.ledger is not None
    admission_s = shown.spans[1].seconds
    assert sum(step_seconds(turn).values()) == pytest.approx(turn.ledger.whole_s + admission_s, abs=1e-3)
    assert all(span.start_s >= 0 for span in shown.spans)
    assert msgspec.json.decode(msgspec.json.encode(shown), type=Drawn) == shown


def test_spans_have_their_depth() -> None:
    shown = drawn(turn_of([(0.5, 0.1, 1.0, 2.0), (3.0, 0.2, 0.7, 4.0)]))
    assert [(span.name, span.depth) for span in shown.spans] == [
        ("chat small", 0),
        ("admission", 1),
        ("session.load", 1),
        ("job.queue_wait", 1),
        *([("attempt", 1), ("claim", 2), ("engine.prefill", 2), ("engine.decode", 2)] * 2),
    ]
    assert (shown.request, shown.attempts, shown.trace_id) == ("req_1", 2, "")
    assert [(span.worker, span.cause) for span in shown.spans if span.name == "attempt"] == [
        ("worker-0", ""),
        ("worker-1", "lost"),
    ]


def test_a_turn_that_runs_decodes_up_to_now() -> None:
    ended = turn_of([(0.5, 0.1, 1.0, 2.0)])
    assert ended.ended_at is not None
    running = replace(ended, state=TurnState.OPENED, ended_at=ended.ended_at + 5.0)
    before, now = step_seconds(ended)["engine.decode"], step_seconds(running)["engine.decode"]
    assert now == pytest.approx(before + 5.01)

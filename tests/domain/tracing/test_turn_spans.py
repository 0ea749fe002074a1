"""The spans of a turn: one tree, attempts linked, steps that add up to the ledger, no text of the user's."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given

from axon.domain.billing.ledger import Ledger
from axon.domain.content.item import Item
from axon.domain.log.chunk import Token
from axon.domain.tracing.context import TraceContext, turn_span_id
from axon.domain.tracing.span import Span
from axon.domain.tracing.turn_spans import leaves, turn_spans
from axon.domain.turn import Turn, TurnState
from tests.domain.tracing.turns import CREATED, restarted, turn_of, turns

STEPS = ("session.load", "job.queue_wait", "claim", "engine.prefill", "engine.decode")


def spans_of(turn: Turn, **more: object) -> list[Span]:
    context = TraceContext("a" * 32, turn_span_id(turn.id), True)
    return turn_spans(turn, context, **more)  # type: ignore[arg-type]


def seconds(spans: list[Span], *names: str) -> float:
    return sum(span.seconds for span in spans if span.name in names)


@given(turns)
def test_the_steps_follow_each_other_and_add_up_to_the_ledger(turn: Turn) -> None:
    spans = spans_of(turn)
    assert turn.ledger is not None
    assert seconds(spans, *STEPS) == pytest.approx(turn.ledger.whole_s, abs=1e-3)
    steps = [span for span in leaves(spans) if span.name in STEPS]
    for before, after in pairwise(steps):
        assert after.start == pytest.approx(before.end, abs=1e-3), "without a gap"


@given(turns)
def test_a_turn_is_one_tree_whose_attempts_are_linked(turn: Turn) -> None:
    spans = spans_of(turn)
    ids = [span.span_id for span in spans]
    assert len(set(ids)) == len(ids)
    assert [span.name for span in spans if not span.parent_id] == [spans[0].name]
    assert {span.parent_id for span in spans[1:]} <= set(ids)
    attempts = [span for span in spans if span.name == "attempt"]
    assert [span.links for span in attempts] == [(), *((span.span_id,) for span in attempts[:-1])]
    assert all(span.start <= span.end for span in spans)


def test_a_turn_under_a_callers_span_is_no_root() -> None:
    turn = turn_of([(0.5, 0.1, 1.0, 2.0)])
    [own, *_] = turn_spans(turn, TraceContext("a" * 32, "b" * 16, True))
    assert own.parent_id == "b" * 16
    assert own.start == CREATED - 0.5


def test_groups_of_steps_are_the_ledgers_own_figures() -> None:
    turn = turn_of([(0.5, 0.1, 1.0, 2.0), (3.0, 0.2, 0.7, 4.0)])
    spans, ledger = spans_of(turn), turn.ledger
    assert ledger is not None
    prefills = [span for span in spans if span.name == "engine.prefill"]
    assert [span.seconds for span in prefills] == pytest.approx([ledger.prefill_s, ledger.replay_s], abs=1e-3)
    assert "axon.replay" not in prefills[0].attributes
    assert prefills[1].attributes["axon.replay"] is True
    [lost, last] = [span for span in spans if span.name == "attempt"]
    assert (lost.error, last.error) == ("attempt_lost", "")
    assert last.attributes["axon.attempt.cause"] == "lost"
    assert last.attributes["axon.worker"] == "worker-1", "as logs and metrics name it"
    assert last.attributes["axon.worker.incarnation"] == "life-1"


def test_a_turn_that_nobody_ran_waits_until_its_end() -> None:
    turn = replace(turn_of([]), state=TurnState.EXPIRED, ended_at=CREATED + 9.0)
    spans = spans_of(replace(turn, ledger=Ledger(queue_s=9.0)))
    assert [span.name for span in spans[1:]] == ["session.load", "job.queue_wait"]
    assert spans[0].error == "expired"
    assert spans[0].attributes["error.type"] == "expired"


def test_a_ledger_of_an_earlier_release_gives_one_attempt() -> None:
    ledger = Ledger(attempts=1, emitted=3, queue_s=1.0, prefill_s=2.0, decode_s=3.0)
    turn = replace(turn_of([]), ledger=ledger, ended_at=CREATED + 6.1)
    spans = spans_of(turn)
    assert seconds(spans, *STEPS) == pytest.approx(6.0, abs=1e-3)


def test_a_restart_of_the_server_is_a_step_of_its_own() -> None:
    """However much was kept of the turn: nothing, so that its first attempt follows the restart, or an attempt."""
    for stretches in ([(45.0, 0.1, 1.0, 2.0)], [(0.5, 0.1, 1.0, 2.0), (45.0, 0.2, 1.0, 2.0)]):
        turn = restarted(turn_of(stretches), 45.0)
        spans = spans_of(turn)
        assert turn.ledger is not None
        assert seconds(spans, "server.restart") == pytest.approx(45.0, abs=0.5)
        assert seconds(spans, "job.queue_wait") < 1
        assert seconds(spans, "engine.decode") == pytest.approx(2.0 * len(stretches), abs=1e-3)
        assert seconds(spans, *STEPS, "server.restart") == pytest.approx(turn.ledger.whole_s, abs=1e-3)
        assert len({span.span_id for span in spans}) == len(spans)


def test_a_models_start_is_a_step_of_its_own() -> None:
    turn = turn_of([(30.0, 0.1, 1.0, 2.0)])
    assert turn.ledger is not None
    spans = spans_of(replace(turn, ledger=replace(turn.ledger, start_s=29.0)))
    assert seconds(spans, "model.start") == pytest.approx(28.75)  # its prompt was made meanwhile
    assert seconds(spans, "job.queue_wait") == pytest.approx(1.25)
    assert seconds(spans, *STEPS, "model.start") == pytest.approx(turn.ledger.whole_s, abs=1e-3)


def test_spans_that_were_rebuilt_say_so() -> None:
    spans = spans_of(turn_of([(0.5, 0.1, 1.0, 2.0)]), reason="slow")
    assert all(span.attributes["axon.rebuilt"] is True for span in spans)
    assert {span.attributes["axon.rebuilt.reason"] for span in spans} == {"slow"}


def test_text_is_in_a_span_only_where_it_is_asked_for() -> None:
    turn = turn_of([(0.5, 0.1, 1.0, 2.0)])
    item = Item(id="i", role="user", texts=("whisper",))
    turn = replace(turn, tokens=(Token(0, 5, "shout"),), job=replace(turn.job, items=(item,)))
    assert not any(word in str(spans_of(turn)) for word in ("whisper", "shout"))
    asked = spans_of(turn, with_content=True)[0].attributes
    assert "whisper" in str(asked["gen_ai.input.messages"])
    assert "shout" in str(asked["gen_ai.output.messages"])

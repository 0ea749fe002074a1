from dataclasses import replace
from unittest.mock import Mock

import pytest

from axon.domain import wire
from axon.domain.billing.ledger import Ledger
from axon.domain.failure import Failure
from axon.domain.log.chunk import Chunk, Token
from axon.domain.registry.samples import Outcome
from axon.domain.turn import TurnState
from axon.gateway.turn.observer import TurnObserving, outcome_of
from tests.contracts.builders import make_job


def ended(state: TurnState, code: str = "") -> Chunk:
    """The last chunk, as it is read from the log: its state is plain text there."""
    return wire.decode(Chunk, wire.encode(Chunk(first=4, epoch=1, terminal=state, code=code)))


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        (ended(TurnState.COMPLETED), Outcome.OK),
        (ended(TurnState.CANCELLED), Outcome.LEFT),
        (ended(TurnState.EXPIRED), Outcome.EXPIRED),
        (ended(TurnState.FAILED, Failure.ENGINE_CRASH), Outcome.ERROR),
        (ended(TurnState.FAILED, "of_a_later_release"), Outcome.ERROR),
        (ended(TurnState.FAILED, Failure.CONTEXT_TOO_LONG), Outcome.OK),
    ],
)
def test_only_faults_of_the_server_count_against_a_version(last: Chunk, outcome: Outcome) -> None:
    assert outcome_of(last) is outcome


def test_a_turn_is_answered_by_its_first_token_and_ended_by_its_last_chunk() -> None:
    observing = Mock()
    observer = TurnObserving(observing)
    observer.saw("a", Chunk(first=1, epoch=1, tokens=(Token(0, 1, "x"),)))
    observing.answered.assert_called_once_with("a")
    observing.ended.assert_not_called()
    observer.saw("a", ended(TurnState.COMPLETED))
    observing.ended.assert_called_once_with("a", Outcome.OK, num_tokens=3, decode_s=None)


def test_the_time_between_tokens_is_the_ledgers_without_what_the_tenants_limit_took() -> None:
    observing = Mock()
    last = replace(ended(TurnState.COMPLETED), ledger=Ledger(decode_s=3.0, paced_s=1.0))
    TurnObserving(observing).saw("a", last)
    observing.ended.assert_called_once_with("a", Outcome.OK, num_tokens=3, decode_s=2.0)


def test_a_reader_that_leaves_is_told_as_one_that_left() -> None:
    observing = Mock()
    TurnObserving(observing).left("a")
    observing.ended.assert_called_once_with("a", Outcome.LEFT)


@pytest.mark.parametrize(
    ("is_first", "ordinal", "is_timed"), [(True, 0, True), (True, 1, True), (False, 0, False), (True, 2, False)]
)
def test_only_the_turn_that_a_session_begins_with_is_timed(is_first: bool, ordinal: int, is_timed: bool) -> None:
    observing, job = Mock(), make_job("a", ordinal=ordinal)
    TurnObserving(observing).begun(job, is_first=is_first)
    observing.begun.assert_called_once_with("a", job.deployment, job.version, is_first=is_timed)


def test_a_turn_in_the_background_is_not_timed() -> None:
    observing, job = Mock(), make_job("a", background=True)
    TurnObserving(observing).begun(job, is_first=True)
    observing.begun.assert_called_once_with("a", job.deployment, job.version, is_first=False)

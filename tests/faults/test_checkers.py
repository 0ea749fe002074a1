"""The checkers find what they are for: a history with one thing wrong has that one violation."""

from dataclasses import replace

import pytest

from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.job import Job
from axon.domain.log.chunk import Token
from axon.domain.sampling import Sampling
from axon.domain.turn import Turn, TurnState
from tests.faults.checkers import check_stored, check_told
from tests.faults.history import Ask, History, Piece, Told

ASK = Ask(name="pair", body={"n": 2}, texts=("abc", "xyz"))
PIECES = [Piece(1.0 + seq / 10, seq, (seq - 1) % 2, letter) for seq, letter in enumerate("axbycz", start=1)]


def told(**changes: object) -> Told:
    whole = Told(
        client=0,
        ask="pair",
        asked_at=0.5,
        stream_id="cmpl-1",
        pieces=list(PIECES),
        finishes=["length", "length"],
        usage=[6],
        num_done=1,
        ended_at=2.0,
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def history(*turns: Told) -> History:
    return History(seed=0, asks={"pair": ASK}, turns=list(turns))


def turn(**changes: object) -> Turn:
    job = Job(
        id="cmpl-1",
        tenant="default",
        deployment="tiny",
        version="1",
        lane="lane.tiny.0",
        prompt_ids=(1,),
        sampling=Sampling(max_tokens=3),
        choices=2,
        seed=1,
        deadline=9.0,
        created=0.0,
        idempotency_key="key",
    )
    tokens = tuple(Token(piece.choice, 1, piece.text) for piece in PIECES)
    whole = Turn(
        id="cmpl-1",
        tenant="default",
        state=TurnState.COMPLETED,
        opened_at=0.0,
        job=job,
        tokens=tokens,
        usage=Usage(output_tokens=6),
        ledger=Ledger(queued=1, prefilled=1, emitted=6, attempts=1),
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def kinds_of(*turns: Told) -> list[str]:
    return sorted({violation.kind for violation in check_told(history(*turns))})


def test_a_whole_history_has_nothing_wrong() -> None:
    assert kinds_of(told()) == []
    assert check_stored(history(told()), [turn()], {}) == []


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"error": "500"}, ["lost"]),
        ({"stream_id": "", "refusals": ["503"]}, ["lost"]),
        ({"ended_at": None}, ["lost"]),
        ({"pieces": [*PIECES[:3], *PIECES[2:]]}, ["repeated", "text"]),
        ({"pieces": [*PIECES[:2], *PIECES[3:]]}, ["gap", "text"]),
        ({"pieces": [*PIECES[:5], PIECES[5]._replace(text="w")]}, ["text"]),
        ({"num_done": 2}, ["repeated"]),
        ({"finishes": ["length"]}, ["repeated"]),
        ({"usage": [7]}, ["billed"]),
        ({"usage": [6, 6]}, ["billed"]),
        ({"slowest_answer_s": 16.0}, ["hung"]),
    ],
)
def test_what_a_client_was_told_wrong_is_found(changes: dict[str, object], kinds: list[str]) -> None:
    assert kinds_of(told(**changes)) == kinds


def test_a_load_of_which_nothing_was_accepted_proves_nothing() -> None:
    assert kinds_of(told(stream_id=""))[0] == "lost"


@pytest.mark.parametrize(
    ("turns", "kinds"),
    [
        ([turn(state=TurnState.FAILED, code="worker_crash")], ["lost"]),
        ([turn(state=TurnState.CANCELLED)], ["lost"]),
        ([turn(), turn()], ["repeated"]),
        ([turn(), turn(id="cmpl-2")], ["repeated"]),
        ([turn(usage=Usage(output_tokens=7))], ["billed"]),
        ([turn(ledger=Ledger(queued=1, emitted=7))], ["billed"]),
        ([turn(ledger=Ledger(queued=2, emitted=6))], ["billed"]),
        ([turn(ledger=None)], ["billed"]),
        ([turn(tenant="other")], ["foreign"]),
        ([turn(tokens=turn().tokens[:5], usage=Usage(output_tokens=5))], ["billed", "text"]),
    ],
)
def test_what_the_store_has_wrong_is_found(turns: list[Turn], kinds: list[str]) -> None:
    assert sorted({violation.kind for violation in check_stored(history(told()), turns, {})}) == kinds


def test_two_asks_that_led_to_one_turn_are_found() -> None:
    found = check_stored(history(told(), told()), [turn()], {})
    assert [violation.kind for violation in found] == ["repeated"]


@pytest.mark.parametrize(
    ("ledger", "kinds"),
    [
        (Ledger(queue_s=0.9), []),
        (Ledger(queued=1, queue_s=0.9), ["billed"]),
        (Ledger(prefilled=1, attempts=1), ["billed"]),
        (Ledger(queued=1, prefilled=1, attempts=1), []),
    ],
)
def test_a_cancelled_turn_costs_its_prompt_only_if_a_worker_began_it(ledger: Ledger, kinds: list[str]) -> None:
    refused = told(stream_id="", pieces=[], finishes=[], usage=[], refusals=["503"])
    job = replace(turn().job, idempotency_key="")
    cancelled = turn(id="cmpl-2", state=TurnState.CANCELLED, tokens=(), usage=Usage(), ledger=ledger, job=job)
    found = check_stored(history(told(), refused), [turn(), cancelled], {})
    assert sorted({violation.kind for violation in found}) == kinds


def test_a_condemned_turn_must_fail_as_it_was_said() -> None:
    failed = turn(id="cmpl-2", state=TurnState.FAILED, code="worker_crash", job=replace(turn().job, idempotency_key=""))
    assert check_stored(history(told()), [turn(), failed], {"cmpl-2": "worker_crash"}) == []
    assert check_stored(history(told()), [turn(), failed], {"cmpl-2": "other"})


def test_a_stall_is_the_longest_wait_after_the_fault_struck() -> None:
    late = [*PIECES[:3], *(piece._replace(at=piece.at + 3.0) for piece in PIECES[3:])]
    assert told(pieces=late).stall_s(since=1.35) == pytest.approx(3.05)
    assert told(pieces=late).stall_s(since=4.55) == pytest.approx(0.05)
    assert told(pieces=late).stall_s(since=5.0) is None
    assert told(pieces=late, kind="waiter").stall_s(since=1.35) is None
    assert told(pieces=late, asked_at=2.0).stall_s(since=1.35) is None


def test_a_turn_that_is_told_from_the_start_again_stalled_only_until_its_first_new_token() -> None:
    again = told(pieces=PIECES[:3])
    again.tell_again()
    again.pieces += [piece._replace(at=piece.at + 3.0) for piece in PIECES]
    assert again.stall_s(since=1.25) == pytest.approx(PIECES[3].at + 3.0 - PIECES[2].at)

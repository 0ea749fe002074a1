"""Turns with times, for the tests of their spans."""

from dataclasses import replace

import msgspec
from hypothesis import strategies as st

from axon.domain.billing.ledger import Ledger, timed
from axon.domain.times import Attempt, Times
from axon.domain.turn import Turn, TurnState, opened
from tests.domain.strategies import make_job

CREATED = 1_800_000_000.0
Stretch = tuple[float, float, float, float]
"""Seconds of one attempt: without an owner or in the queue before it, claim, silence, generation."""


def turn_of(stretches: list[Stretch], *, loaded_s: float = 0.25, late_s: float = 0.01) -> Turn:
    """An ended turn whose attempts took these seconds, with the ledger that its workers would have kept."""
    now, attempts, ledger = CREATED + loaded_s, [], Ledger(attempts=len(stretches))
    for number, (waited_s, claim_s, silent_s, generated_s) in enumerate(stretches):
        now += waited_s + claim_s
        cause = "lost" if number else ""
        who = (f"life-{number}", f"worker-{number}")
        attempts.append(Attempt(1000 + number, who[0], now, claim_s, silent_s, 5 * number, cause, who[1]))
        if number:
            ledger = replace(ledger, replay_s=ledger.replay_s + silent_s)
        else:
            ledger = replace(ledger, queue_s=now - CREATED, prefill_s=silent_s)
        now += silent_s + generated_s
    times = Times(CREATED - 0.5, loaded_s, "req_1", tuple(attempts))
    ledger = replace(timed(ledger, whole_s=now - CREATED, has_begun=bool(stretches)), times=times)
    job = make_job(created=CREATED)
    return replace(opened(job), state=TurnState.COMPLETED, ended_at=now + late_s, ledger=ledger)


def restarted(turn: Turn, lost_s: float) -> Turn:
    """The turn, whose last attempt follows a restart of the server that took these seconds up to its claim's begin."""
    assert turn.ledger is not None
    assert turn.ledger.times is not None
    ledger, times = turn.ledger, turn.ledger.times
    last = times.attempts[-1]
    last = msgspec.structs.replace(last, cause="restart", restart_s=lost_s + last.claim_s)
    times = msgspec.structs.replace(times, attempts=(*times.attempts[:-1], last))
    return replace(turn, ledger=replace(_without(ledger, last.restart_s), times=times, restarts=1))


def _without(ledger: Ledger, lost_s: float) -> Ledger:
    """The ledger with the restart's seconds apart from the figure that they were in."""
    if ledger.attempts > 1:
        return replace(ledger, restart_s=lost_s, decode_s=ledger.decode_s - lost_s)
    lost_s = min(lost_s, ledger.queue_s)
    return replace(ledger, restart_s=lost_s, queue_s=ledger.queue_s - lost_s)


_SECONDS = st.floats(0, 100)
turns = st.lists(st.tuples(_SECONDS, st.floats(0, 1), _SECONDS, _SECONDS), min_size=1, max_size=4).map(turn_of)

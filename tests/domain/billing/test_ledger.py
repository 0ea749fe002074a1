"""A turn's ledger: its times add up to the whole, whatever phase it ended in, and the bill counts nothing twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.billing.ledger import Ledger, latest, timed

times = st.floats(0, 1e6)


@given(times, times, times, times, st.integers(0, 3), st.booleans(), times)
def test_the_phases_add_up_to_the_whole_time(
    queue_s: float, prefill_s: float, replay_s: float, restart_s: float, attempts: int, has_begun: bool, more_s: float
) -> None:
    if not attempts:
        queue_s = prefill_s = replay_s = restart_s = 0.0
    elif not has_begun:
        prefill_s = 0.0
    whole_s = queue_s + prefill_s + replay_s + restart_s + more_s
    ledger = Ledger(queue_s=queue_s, prefill_s=prefill_s, replay_s=replay_s, restart_s=restart_s, attempts=attempts)
    found = timed(ledger, whole_s=whole_s, has_begun=has_begun)
    total_s = found.queue_s + found.prefill_s + found.decode_s + found.replay_s + found.restart_s
    assert found.whole_s == pytest.approx(total_s)
    assert total_s == pytest.approx(whole_s, rel=1e-6, abs=1e-6)
    rest = {not attempts: found.queue_s, bool(attempts) and not has_begun: found.prefill_s}
    assert rest.get(True, found.decode_s) == pytest.approx(more_s, rel=1e-6, abs=1e-3)


def test_a_clock_that_went_back_makes_no_time_negative() -> None:
    ledger = Ledger(attempts=1, queue_s=5.0, prefill_s=1.0)
    assert timed(ledger, whole_s=2.0, has_begun=True).decode_s == 0.0
    assert timed(ledger, whole_s=2.0, has_begun=False).prefill_s == 0.0
    assert timed(Ledger(), whole_s=-1.0, has_begun=False).queue_s == 0.0


def test_neither_a_cache_nor_a_failure_changes_the_bill() -> None:
    plain = Ledger(queued=10, prefilled=10, emitted=5)
    assert plain.billed == Ledger(queued=10, cached=10, emitted=5).billed == 15
    assert plain.billed == Ledger(queued=10, prefilled=10, emitted=5, replayed=40, wasted=7).billed
    assert (plain.computed, Ledger(queued=10, cached=10, emitted=5, replayed=4, wasted=1).computed) == (15, 10)


def test_the_last_chunk_knows_the_most_and_the_stream_counts_its_tokens() -> None:
    assert latest([], emitted=3) is None
    assert latest([Ledger(queued=1), Ledger(queued=2, emitted=9)], emitted=3) == Ledger(queued=2, emitted=3)

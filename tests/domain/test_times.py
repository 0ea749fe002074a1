"""The times of a turn: which attempts are known, and why each followed the one before."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.log.ownership import next_epoch
from axon.domain.times import Attempt, Times, cause_of, claimed_at_of, missed, with_attempt, with_last

FIRST = Attempt(7_001, "a", 7.0, 0.1, 0.5)


def test_of_many_attempts_the_first_and_the_last_ones_stay() -> None:
    times = Times()
    for epoch in range(1, 40):
        times = with_attempt(times, Attempt(epoch))
    epochs = [attempt.epoch for attempt in times.attempts]
    assert epochs == [1, *range(25, 40)]


def test_the_last_attempt_alone_is_changed() -> None:
    times = Times(attempts=(FIRST, Attempt(8)))
    assert with_last(times, silent_s=2.0).attempts == (FIRST, Attempt(8, silent_s=2.0))
    assert with_last(Times(), epoch=3) == Times()


@given(st.floats(1e9, 3e9))
def test_an_epoch_tells_about_when_it_was_claimed(now: float) -> None:
    assert claimed_at_of(next_epoch(0, now)) == pytest.approx(now, abs=0.0011)


@pytest.mark.parametrize(
    ("times", "epoch", "found"),
    [
        (Times(), 0, None),
        (Times(), 9_001, Attempt(9_001, "b", 9.0)),
        (Times(attempts=(FIRST,)), 7_001, None),
        (Times(attempts=(FIRST,)), 9_001, Attempt(9_001, "b", 9.0)),
    ],
)
def test_an_attempt_that_wrote_nothing_is_known_by_its_epoch(times: Times, epoch: int, found: Attempt | None) -> None:
    assert missed(times, epoch=epoch, owner="b") == found


@pytest.mark.parametrize(
    ("times", "owner", "me", "cause"),
    [
        (Times(), "", "b", ""),
        (Times(attempts=(FIRST,)), "a", "b", "lost"),
        (Times(attempts=(FIRST,)), "", "b", "handed_over"),
        (Times(attempts=(FIRST,)), "", "a", "engine"),
        (Times(attempts=(FIRST,)), "a", "a", "engine"),
    ],
)
def test_why_an_attempt_follows_another(times: Times, owner: str, me: str, cause: str) -> None:
    assert cause_of(times, owner=owner, me=me) == cause


def test_times_of_a_later_release_are_read() -> None:
    attempt = [7, "a", 7.0, 0.1, 0.5, 0, "", "w", 0.2, "later"]
    longer = msgspec.msgpack.encode([1.0, 0.5, "req", [attempt], 8.0, "later"])
    read = msgspec.msgpack.decode(longer, type=Times)
    assert read == Times(1.0, 0.5, "req", (Attempt(7, "a", 7.0, 0.1, 0.5, name="w", restart_s=0.2),), noted_at=8.0)


def test_times_of_the_release_before_are_read() -> None:
    shorter = msgspec.msgpack.encode([1.0, 0.5, "req", [[7, "a", 7.0, 0.1, 0.5, 0, "lost"]]])
    assert msgspec.msgpack.decode(shorter, type=Times).attempts == (Attempt(7, "a", 7.0, 0.1, 0.5, cause="lost"),)

"""How a metered stream goes on: told at the rate of the refill, never stuck, with a bounded number in hand."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from axon.worker.job.allowance import LEAST_AHEAD, PAUSE_AT, RESUME_AT, Stream, pace

streams = st.builds(
    Stream,
    prompt=st.integers(0, 1000),
    allowed=st.floats(0, 3000),
    logged=st.integers(0, 1000),
    made=st.integers(0, 2000),
    recent=st.integers(0, 200),
    is_over=st.booleans(),
    is_paused=st.booleans(),
).map(lambda stream: replace(stream, made=max(stream.made, stream.logged)))


@given(stream=streams)
def test_nothing_beyond_what_is_paid_for_is_told_and_nothing_is_taken_back(stream: Stream) -> None:
    decided = pace(stream)
    assert decided.limit >= stream.logged
    assert decided.limit == stream.logged or stream.prompt + decided.limit <= stream.allowed


@given(stream=streams)
def test_what_is_held_back_is_always_asked_for(stream: Stream) -> None:
    decided = pace(stream)
    if stream.made > decided.limit:
        assert decided.more >= stream.made - decided.limit


@given(stream=streams)
def test_a_stream_that_goes_on_asks_ahead_and_one_that_is_over_asks_for_what_it_made(stream: Stream) -> None:
    decided = pace(stream)
    assert decided.limit + decided.more >= stream.made + (0 if stream.is_over else LEAST_AHEAD)
    if stream.is_over:
        assert decided.limit + decided.more <= max(decided.limit, stream.made)


@given(stream=streams)
def test_a_stream_with_nothing_in_hand_is_in_the_engine(stream: Stream) -> None:
    decided = pace(stream)
    if stream.made - decided.limit <= RESUME_AT or stream.is_over:
        assert not decided.is_paused
    elif stream.made - decided.limit >= PAUSE_AT:
        assert decided.is_paused


@settings(deadline=None)
@given(
    rate=st.floats(0.5, 100),
    speed=st.integers(1, 30),
    burst=st.integers(0, 300),
    length=st.integers(1, 800),
)
def test_a_dry_bucket_paces_a_stream_to_its_rate_and_to_the_last_token(
    rate: float, speed: int, burst: int, length: int
) -> None:
    """A bucket, an engine of so many tokens a round and the rounds between them, every 0.2 s."""
    stream = Stream(prompt=0, allowed=0, logged=0, made=0)
    level, rounds, num_pauses, was_paused = float(burst), 0, 0, False
    while stream.logged < length:
        rounds += 1
        level += rate * 0.2
        before = stream.made
        made = stream.made if stream.is_paused else min(length, stream.made + speed)
        stream = replace(stream, made=made, recent=made - before, is_over=made == length)
        granted = int(min(pace(stream).more, level))
        level -= granted
        stream = replace(stream, allowed=stream.allowed + granted)
        decided = pace(stream)
        num_pauses += decided.is_paused and not was_paused
        was_paused = decided.is_paused
        stream = replace(stream, is_paused=decided.is_paused, logged=min(stream.made, decided.limit))
        assert stream.made - stream.logged <= PAUSE_AT + speed
        assert rounds < 10_000
    needed = max(length / speed, (length - burst) / (rate * 0.2))
    assert needed - 1 <= rounds <= needed * 1.1 + 10
    assert num_pauses <= length / (PAUSE_AT - RESUME_AT) + 1, "it must not go in and out for every token"

"""A reader is told every token past its place once, and the end, whatever the log has forgotten meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from axon.domain.log.chunk import Token
from axon.domain.session.erasure import without_words
from axon.domain.turn import TurnState, opened
from axon.domain.wire import encode
from axon.errors import DependencyDown, Draining, StreamDiverged
from axon.gateway.http.errors import Gone
from axon.gateway.offers.wait import State, Wait
from axon.gateway.turn.notices import Notices
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_chunk
from tests.gateway.turn.following import GRACE_S, JOB, SILENCE_S, Stream, complete, settled

DEADLINE_S = 60.0
"""Of a whole test: whoever waits for longer waits in vain."""


@pytest.fixture
async def stream(clock: FakeClock) -> AsyncIterator[Stream]:
    made = Stream(clock)
    await made.open()
    async with asyncio.timeout(DEADLINE_S):
        yield made


@pytest.mark.parametrize("after", [0, 1, 3, 4, 5])
async def test_a_reader_who_comes_back_gets_exactly_the_rest(stream: Stream, after: int) -> None:
    await stream.say(1, 2)
    await stream.say(3, 2)
    async with stream.reader(after) as reader:
        await stream.wake()
        await stream.say(5, 1, terminal="completed")
        assert await reader.end() == "completed"
    assert reader.ids == [*range(after + 1, 6)]


async def test_a_hint_that_simply_follows_is_told_without_reading_the_log(stream: Stream) -> None:
    await stream.say(1)
    async with stream.reader() as reader:
        await settled()
        before = stream.num_log_reads
        await stream.wake(encode(make_chunk(2, epoch=stream.epoch)))
        assert (reader.ids, stream.num_log_reads) == ([1, 2], before)


async def test_tokens_that_a_hint_skips_are_read_from_the_log(stream: Stream) -> None:
    stream.live.wakeups.wake = lambda channel, payload=b"": None  # type: ignore[method-assign]
    async with stream.reader() as reader:
        await settled()
        await stream.say(1, 3)
        del stream.live.wakeups.wake
        await stream.wake(encode(make_chunk(3, epoch=stream.epoch)))
        assert reader.ids == [1, 2, 3]


async def test_a_hint_that_says_what_was_read_before_changes_nothing(stream: Stream) -> None:
    await stream.say(1, 3)
    async with stream.reader() as reader:
        await stream.wake(encode(make_chunk(2, epoch=stream.epoch)))
        assert reader.ids == [1, 2, 3]


async def test_a_silent_stream_says_so_now_and_then(stream: Stream) -> None:
    async with stream.reader() as reader:
        await stream.pass_s(SILENCE_S - 1)
        assert reader.num_silences == 0
        await stream.pass_s(2)
        assert reader.num_silences == 1
        await stream.pass_s(2)
        assert reader.num_silences == 1


async def test_a_new_reader_of_a_stream_that_speaks_costs_the_store_nothing(stream: Stream) -> None:
    async with stream.reader() as reader:
        for seq in range(1, 6):
            await stream.pass_s(2)
            await stream.say(seq)
        await stream.say(6, terminal="completed")
        assert await reader.end() == "completed"
    assert (stream.turns.num_asked, stream.turns.num_barriers) == (0, 0)


async def test_the_store_is_asked_about_a_silent_stream_ever_more_rarely(stream: Stream) -> None:
    async with stream.reader():
        asked = []
        for _ in range(25):
            await stream.pass_s(1)
            asked.append(stream.turns.num_asked)
    assert [second for second in range(1, 25) if asked[second] > asked[second - 1]] == [2, 5, 11, 23]


async def test_an_end_that_the_log_has_lost_is_found_in_the_store_after_a_silence(stream: Stream) -> None:
    await stream.say(1, 3)
    async with stream.reader() as reader:
        await settled()
        stream.turns.stored = complete(5)
        await stream.pass_s(2.9)
        assert reader.ids == [1, 2, 3]
        await stream.pass_s(0.2)
        assert await reader.end() == "completed"
    assert reader.ids == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("after", [0, 2, 3, 5])
async def test_a_reader_who_comes_back_learns_a_known_end_at_once(stream: Stream, after: int) -> None:
    """The log kept three of five tokens and lost the end; no clock moves, so no silence is waited for."""
    await stream.say(1, 3)
    async with stream.reader(after, found=complete(5)) as reader:
        assert await reader.end() == "completed"
    assert reader.ids == [*range(after + 1, 6)]
    assert stream.turns.num_asked == 0


async def test_a_log_that_knows_the_end_tells_it_itself(stream: Stream) -> None:
    await stream.say(1, 2)
    await stream.say(3, 1, terminal="completed")
    async with stream.reader(found=complete(3)) as reader:
        assert await reader.end() == "completed"
    assert reader.ids == [1, 2, 3]


async def test_a_reader_who_comes_back_to_a_turn_that_runs_follows_the_log(stream: Stream) -> None:
    await stream.say(1, 3)
    async with stream.reader(2, found=opened(JOB)) as reader:
        await settled()
        await stream.say(4, terminal="completed")
        assert await reader.end() == "completed"
    assert (reader.ids, stream.turns.num_asked) == ([3, 4], 0)


async def test_a_place_beyond_the_log_is_looked_up_at_the_first_look(stream: Stream) -> None:
    await stream.say(1, 3)
    stream.turns.stored = complete(5)
    async with stream.reader(5) as reader:
        assert await reader.end() == "completed"
    assert (reader.ids, stream.turns.num_asked) == ([], 1)


async def test_a_log_that_loses_its_end_under_its_reader_is_looked_up_at_once(stream: Stream) -> None:
    await stream.say(1, 5)
    async with stream.reader() as reader:
        await settled()
        stream.live.log.lose_tail(JOB.id, keep=2)
        stream.turns.stored = complete(5)
        await stream.wake()
        assert await reader.end() == "completed"
    assert reader.ids == [1, 2, 3, 4, 5]


async def test_a_log_that_is_written_again_is_looked_up_once(stream: Stream) -> None:
    await stream.say(1, 5)
    async with stream.reader() as reader:
        await settled()
        stream.live.log.lose_tail(JOB.id, keep=0)
        for seq in range(1, 6):
            await stream.say(seq)
            await stream.wake()
        await stream.say(6, terminal="completed")
        assert await reader.end() == "completed"
    assert (reader.ids, stream.turns.num_asked) == ([1, 2, 3, 4, 5, 6], 1)


async def test_a_stream_that_the_log_has_forgotten_is_read_from_the_store_behind_a_barrier(stream: Stream) -> None:
    stream.live.log.lose_everything()
    stream.turns.stored = complete(4)
    async with stream.reader(1) as reader:
        assert await reader.end() == "completed"
    assert (reader.ids, stream.turns.num_barriers) == ([2, 3, 4], 1)


async def test_a_stream_whose_words_were_taken_back_is_gone(stream: Stream) -> None:
    stream.live.log.lose_everything()
    stream.turns.stored = without_words(complete(4))
    async with stream.reader() as reader:
        with pytest.raises(Gone):
            await reader.end()


async def test_another_attempt_that_says_the_same_goes_on(stream: Stream) -> None:
    await stream.say(1, 3)
    async with stream.reader() as reader:
        await settled()
        stream.live.log.lose_tail(JOB.id, keep=0)
        await stream.claim()
        await stream.say(1, 5, terminal="completed")
        assert await reader.end() == "completed"
    assert reader.ids == [1, 2, 3, 4, 5]


async def test_another_attempt_that_says_something_else_ends_the_stream(stream: Stream) -> None:
    await stream.say(1, 3)
    async with stream.reader() as reader:
        await settled()
        stream.live.log.lose_tail(JOB.id, keep=1)
        await stream.claim()
        await stream.append(replace(make_chunk(2, epoch=stream.epoch), tokens=(Token(0, 99, " x"), Token(0, 98, " y"))))
        await stream.append(make_chunk(4, epoch=stream.epoch, terminal="completed"))
        with pytest.raises(StreamDiverged):
            await reader.end()
    assert reader.ids == [1, 2, 3]


async def test_a_stream_that_is_complete_before_the_readers_place_has_diverged(stream: Stream) -> None:
    async with stream.reader(9) as reader:
        await settled()
        await stream.say(1, 5, terminal="completed")
        with pytest.raises(StreamDiverged, match="complete with 5 tokens"):
            await reader.end()


async def test_a_stream_that_was_cancelled_before_the_readers_place_has_ended(stream: Stream) -> None:
    async with stream.reader(9) as reader:
        await settled()
        await stream.say(1, 5, terminal="cancelled")
        assert await reader.end() == "cancelled"
    assert reader.ids == []


async def test_a_gateway_that_drains_tells_what_was_said_and_then_that_it_drains(stream: Stream) -> None:
    await stream.say(1, 2)
    async with stream.reader() as reader:
        await settled()
        await stream.append(make_chunk(3, epoch=stream.epoch))
        await stream.follower.end()
        with pytest.raises(Draining):
            await reader.end()
    assert reader.ids == [1, 2, 3]


async def test_a_gateway_that_drains_still_tells_an_end(stream: Stream) -> None:
    await stream.follower.end()
    await stream.say(1, 2, terminal="completed")
    async with stream.reader() as reader:
        assert await reader.end() == "completed"


async def test_a_log_that_does_not_answer_for_a_while_loses_nothing(stream: Stream) -> None:
    await stream.say(1, 2)
    stream.is_down = True
    async with stream.reader() as reader:
        await settled()
        stream.is_down = False
        await stream.say(3, 1, terminal="completed")
        assert await reader.end() == "completed"
    assert reader.ids == [1, 2, 3]


async def test_a_log_that_stays_away_ends_the_stream_with_a_reason(stream: Stream) -> None:
    stream.is_down = True
    async with stream.reader() as reader:
        await settled()
        await stream.pass_s(31.0)
        with pytest.raises(DependencyDown):
            await reader.end()


async def test_a_stream_is_told_that_it_has_a_reader(clock: FakeClock) -> None:
    stream = Stream(clock)
    await stream.live.log.open(JOB.id, encode(JOB), reader_ttl_s=GRACE_S)
    async with asyncio.timeout(DEADLINE_S), stream.reader():
        for _ in range(5):
            await stream.pass_s(GRACE_S / 2)
        view = await stream.live.log.read(JOB.id, after=0)
    assert view is not None
    assert not view.cancelled


async def test_a_reader_of_a_turn_that_nobody_has_claimed_is_told_how_it_waits(clock: FakeClock) -> None:
    stream = Stream(clock)
    await stream.live.log.open(JOB.id, encode(JOB), reader_ttl_s=None)
    waits = [Wait(state=State.LOADING, position=position) for position in (3, 2, 1)]
    seen = [waits[0]]
    async with stream.reader(notices=Notices(lambda: seen[-1], waits[0], now=clock.monotonic())) as reader:
        await stream.pass_s(3)
        assert reader.waits == []
        for wait in waits[1:]:
            seen.append(wait)
            await stream.pass_s(3)
        assert reader.waits == waits[1:]
        assert reader.num_silences == 0
        await stream.claim()
        seen.append(waits[0])
        await stream.pass_s(3)
        assert reader.waits == waits[1:], "a worker has it"
        await stream.say(1, 2, terminal="completed")
        await stream.wake()
        assert await reader.end() == "completed"


async def test_a_turn_that_another_reader_follows_is_not_left(stream: Stream) -> None:
    async with stream.reader() as stays:
        async with stream.reader():
            await stream.say(1)
            await stream.wake()
        stream.observer.left.assert_not_called()
        await stream.say(2, terminal=TurnState.COMPLETED)
        await stream.wake()
        assert await stays.end() == TurnState.COMPLETED
    stream.observer.left.assert_called_once_with(JOB.id)

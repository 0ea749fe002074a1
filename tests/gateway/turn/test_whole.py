"""An answer in one piece: all of it or an error, and a client that leaves is noticed while it is made."""

import asyncio
from dataclasses import replace

import pytest

from axon.domain.log.chunk import Chunk
from axon.errors import Draining, KeyRevoked
from axon.gateway.http.errors import ClientLeft
from axon.gateway.turn.whole import answered
from tests.contracts.builders import make_job
from tests.gateway.turn.desk import Desk

JOB = make_job("chatcmpl-1", reader_grace_s=0.0)
DEADLINE_S = 20.0


@pytest.fixture
async def desk() -> Desk:
    made = Desk(JOB)
    await made.open()
    return made


async def ask(desk: Desk) -> list[Chunk]:
    async with asyncio.timeout(DEADLINE_S):
        return await answered(desk.request(), desk.job)


async def begun(desk: Desk) -> "asyncio.Task[list[Chunk]]":
    """An answer that is waited for."""
    asking = asyncio.create_task(ask(desk))
    async with asyncio.timeout(DEADLINE_S):
        while not desk.follower.key_ids:  # noqa: ASYNC110 - it has no event for its readers
            await asyncio.sleep(0)
    return asking


async def test_the_whole_answer_is_returned_with_its_end(desk: Desk) -> None:
    asking = await begun(desk)
    await desk.say(1, 2)
    await desk.say(3, terminal="completed")
    chunks = await asking
    assert [token.id for chunk in chunks for token in chunk.tokens] == [1, 2, 3]
    assert [chunk.terminal for chunk in chunks][-1] == "completed"
    assert not await desk.is_cancelled()


async def test_a_client_that_leaves_ends_its_turn(desk: Desk) -> None:
    asking = await begun(desk)
    await desk.say(1)
    desk.gone.set()
    with pytest.raises(ClientLeft):
        await asking
    assert await desk.is_cancelled()
    assert desk.metrics.turns.cancelled.labels(cause="left")._value.get() == 1
    assert desk.follower.key_ids == frozenset()


async def test_a_turn_that_may_go_on_unread_goes_on(desk: Desk) -> None:
    desk.job = replace(JOB, reader_grace_s=None)
    asking = await begun(desk)
    desk.gone.set()
    with pytest.raises(ClientLeft):
        await asking
    assert not await desk.is_cancelled()


async def test_a_stream_that_breaks_off_is_raised_as_itself_and_not_in_a_group(desk: Desk) -> None:
    await desk.say(1)
    await desk.follower.end()
    with pytest.raises(Draining):
        await ask(desk)


async def test_a_revoked_key_ends_the_waiting_and_the_turn(desk: Desk) -> None:
    asking = await begun(desk)
    await desk.follower.revoke({"k0000001"})
    with pytest.raises(KeyRevoked):
        await asking
    assert await desk.is_cancelled()
    assert desk.metrics.turns.cancelled.labels(cause="key_revoked")._value.get() == 1

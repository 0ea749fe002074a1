"""Who may read a stream again, and from which place on."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.log.chunk import End
from axon.domain.reply import ChatReply
from axon.domain.turn import opened
from axon.domain.wire import encode
from axon.errors import InvalidInput, NotFound
from axon.gateway import streams
from axon.gateway.turn.follow import Follower
from axon.runtime.clock import FakeClock
from axon.sessions import erasure
from axon.telemetry.metrics import Metrics
from tests.contracts.builders import claim_epoch, make_chunk, make_job
from tests.sessions.world import TENANT, Kept, open_kept

CHAT = make_job("chatcmpl-1", tenant=TENANT, session="", retain=True, reply=ChatReply(model="echo"))
METRICS = Metrics()
DEADLINE_S = 10.0


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    async with open_kept(tmp_path) as found:
        yield found


async def accepted(kept: Kept) -> int:
    """Accepts the chat and claims it; returns its epoch."""
    await kept.live.log.open(CHAT.id, encode(CHAT), reader_ttl_s=None)
    await kept.journal.append([opened(CHAT)])
    return await claim_epoch(kept.live.log, CHAT.id, "w1", over=0)


async def said(kept: Kept, num_tokens: int) -> None:
    """The chat runs, and has said so much."""
    await kept.live.log.append([(CHAT.id, make_chunk(1, num_tokens, epoch=await accepted(kept)))])


async def ended(kept: Kept, num_tokens: int, state: str = "completed") -> None:
    """The chat has ended, and the store knows."""
    await kept.end(CHAT, make_chunk(1, num_tokens, epoch=await accepted(kept), terminal=state, ends=(End(0, "stop"),)))
    await kept.journal.barrier(timeout_s=30.0)


def asking(kept: Kept, *, tenant: str = TENANT, **headers: str) -> Request:
    """A request to a gateway whose clock stands: no silence is ever long enough for it."""
    turns: Any = kept.turns
    follower = Follower(kept.live, turns, kept.lookup, FakeClock(), reader_grace_s=30.0, silence_s=15.0)
    gateway = SimpleNamespace(sessions=kept.sessions, follower=follower, metrics=METRICS, clock=FakeClock())
    app = SimpleNamespace(state=SimpleNamespace(gateway=gateway))
    who = SimpleNamespace(tenant=tenant, key_id="key-1")
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "app": app, "headers": named, "axon.identity": who})


async def text_of(response: Response) -> str:
    body: Any = response
    async with asyncio.timeout(DEADLINE_S):
        return b"".join([part async for part in body.body_iterator]).decode()


async def test_a_deleted_chat_that_takes_long_to_stop_is_not_read_any_more(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker does not heed the cancel flag: the log still has the words, and gets more of them."""
    monkeypatch.setattr(erasure, "_STOP_S", 0.0)
    await said(kept, 3)
    await kept.erasure.turn(opened(CHAT))
    view = await kept.live.log.read(CHAT.id, after=0)
    assert view is not None
    assert not view.ended
    with pytest.raises(NotFound):
        await streams.show(asking(kept), CHAT.id)


async def test_a_foreign_stream_is_looked_for_where_an_unknown_one_is(kept: Kept) -> None:
    await accepted(kept)
    num_reads = []
    for stream_id in (CHAT.id, "chatcmpl-unknown"):
        before = kept.turns.num_reads
        with pytest.raises(NotFound):
            await streams.show(asking(kept, tenant="other"), stream_id)
        num_reads.append(kept.turns.num_reads - before)
    assert num_reads == [1, 1]


async def test_a_reader_whose_log_has_lost_the_end_is_told_it_at_once(kept: Kept) -> None:
    await ended(kept, 2)
    kept.live.log.lose_tail(CHAT.id, keep=1)
    told = await text_of(await streams.show(asking(kept), CHAT.id, after="1"))
    assert '"content":" 2"' in told
    assert '"end":true' in told


@pytest.mark.parametrize("after", ["2", "9999"])
async def test_a_place_past_a_complete_answer_is_refused(kept: Kept, after: str) -> None:
    await ended(kept, 1)
    with pytest.raises(InvalidInput, match="complete with 1 tokens") as refused:
        await streams.show(asking(kept), CHAT.id, after=after)
    assert refused.value.param == "after"


async def test_a_last_event_id_past_a_complete_answer_is_refused(kept: Kept) -> None:
    await ended(kept, 1)
    with pytest.raises(InvalidInput) as refused:
        await streams.show(asking(kept, last_event_id="2"), CHAT.id)
    assert refused.value.param == "Last-Event-ID"


async def test_a_reader_who_has_all_of_a_complete_answer_is_told_its_end(kept: Kept) -> None:
    await ended(kept, 1)
    assert '"seq":1,"end":true' in await text_of(await streams.show(asking(kept), CHAT.id, after="1"))


@pytest.mark.parametrize("state", ["cancelled", "failed"])
async def test_a_place_past_an_answer_that_was_broken_off_is_not_refused(kept: Kept, state: str) -> None:
    """What was read before may have been lost with the log's tail, and the turn have ended shorter for it."""
    await ended(kept, 1, state)
    assert (await streams.show(asking(kept), CHAT.id, after="5")).status_code == 200


async def test_a_place_past_what_a_running_answer_has_said_is_not_refused(kept: Kept) -> None:
    await said(kept, 3)
    assert (await streams.show(asking(kept), CHAT.id, after="5")).status_code == 200


async def test_a_log_that_was_written_again_with_less_refuses_nobody_and_the_store_tells_the_end(kept: Kept) -> None:
    """The log lost an answer of two tokens, which the store has, and another attempt completed it there with none."""
    await ended(kept, 2)
    await kept.end_again(CHAT, state="completed")
    assert '"seq":2,"end":true' in await text_of(await streams.show(asking(kept), CHAT.id, after="2"))
    with pytest.raises(InvalidInput, match="complete with 2 tokens"):
        await streams.show(asking(kept), CHAT.id, after="3")

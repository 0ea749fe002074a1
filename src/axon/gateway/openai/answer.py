"""Answers an accepted chat or completion, with a stream of frames or one object. Knows no route and no prompt."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.turn import Turn
from axon.gateway.offers.wait import Wait
from axon.gateway.openai import frames
from axon.gateway.openai.outcome import failure
from axon.gateway.turn.context import gateway_of
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.headers import STREAM_HEADER, wants_ids, wants_ledger
from axon.gateway.turn.position import LAST_EVENT_ID, check_position, last_event_id
from axon.gateway.turn.sse import Streamed, StreamStart, stream
from axon.gateway.turn.waiting import wait_headers, wait_of
from axon.gateway.turn.whole import answered


class Whole(Protocol):
    """Writes a whole answer as one object."""

    def __call__(self, job: Job, chunks: Sequence[Chunk], *, with_ledger: bool = False) -> dict[str, Any]: ...


def streamed(request: Request, start: StreamStart) -> Response:
    """Returns a response that streams the frames past a seq; the headers say whether with ids and ledger."""
    writer = frames.Writer(
        start.job,
        after=start.after,
        with_ids=wants_ids(request),
        with_ledger=wants_ledger(request),
        wait=start.wait,
    )
    return stream(request, start, writer, after=start.after)


def stopped_body(turn: Turn, kind: str) -> dict[str, Any]:
    """Returns the body that answers a cancellation: the turn's status, and its usage once it has ended.

    ``kind`` is the value of the field ``object``.
    """
    status = turn.state.value if turn.state.terminal else "in_progress"
    usage = frames.usage_body(turn.usage) if turn.state.terminal else None
    return {"id": turn.id, "object": kind, "status": status, "usage": usage}


async def answer(
    request: Request, entry: Entry, *, streams: bool, streamed: Streamed = streamed, whole: Whole = frames.whole
) -> Response:
    """Returns the response for the entry's turn: a stream if the client asked for one, otherwise one object.

    ``streamed`` and ``whole`` write it; other APIs than chat and completions give their own.
    """
    job, wait = entry.job, await wait_of(request, entry)
    if not streams:
        return await _whole(request, job, entry.found, wait, whole)
    after = 0
    if entry.found is not None:
        after = last_event_id(request)
        await check_position(gateway_of(request).sessions.lookup, entry.found, after, LAST_EVENT_ID)
    start = StreamStart(job=job, after=after, found=entry.found, started=job.created, wait=wait)
    return streamed(request, start)


async def _whole(request: Request, job: Job, found: Turn | None, wait: Wait | None, whole: Whole) -> Response:
    """Waits for the turn's end and returns the answer as one object; raises the turn's error if it failed."""
    chunks = await answered(request, job, found=found)
    if error := failure(chunks[-1], job.reply):
        raise error
    body = whole(job, chunks, with_ledger=wants_ledger(request))
    headers = {STREAM_HEADER: job.id, **wait_headers(wait)}
    return Response(msgspec.json.encode(body), media_type="application/json", headers=headers)

"""Answers an accepted message, with a stream of events or one object. Knows no route and no prompt."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.job import Job
from axon.domain.turn import Turn
from axon.gateway.anthropic.events import Writer
from axon.gateway.anthropic.message import message_body
from axon.gateway.http.middleware import REQUEST_ID
from axon.gateway.offers.wait import Wait
from axon.gateway.openai.outcome import failure
from axon.gateway.turn.context import gateway_of
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.headers import STREAM_HEADER, wants_ids, wants_ledger
from axon.gateway.turn.position import LAST_EVENT_ID, check_position, last_event_id
from axon.gateway.turn.sse import stream
from axon.gateway.turn.waiting import wait_headers, wait_of
from axon.gateway.turn.whole import answered


async def answer(request: Request, entry: Entry, *, streams: bool) -> Response:
    """Returns the response for the entry's turn: a stream if the client asked for one, otherwise one object."""
    job, wait = entry.job, await wait_of(request, entry)
    if not streams:
        return await _whole(request, job, entry.found, wait)
    after = 0
    if entry.found is not None:
        after = last_event_id(request)
        await check_position(gateway_of(request).sessions.lookup, entry.found, after, LAST_EVENT_ID)
    return streamed(request, job, after=after, found=entry.found, started=job.created, wait=wait)


def streamed(
    request: Request,
    job: Job,
    *,
    after: int,
    found: Turn | None = None,
    started: float | None = None,
    wait: Wait | None = None,
) -> Response:
    """Streams the events past seq ``after``. All tokens are read from the first on, as blocks are numbered by them."""
    writer = Writer(
        job,
        after=after,
        with_ids=wants_ids(request),
        with_ledger=wants_ledger(request),
        wait=wait,
        request_id=request.scope[REQUEST_ID],
    )
    return stream(request, job, writer, found=found, started=started, wait=wait)


async def _whole(request: Request, job: Job, found: Turn | None, wait: Wait | None) -> Response:
    """Waits for the turn's end and returns the message; raises the turn's error if it failed."""
    chunks = await answered(request, job, found=found)
    if error := failure(chunks[-1], job.reply):
        raise error
    body = message_body(job, chunks, with_ledger=wants_ledger(request))
    headers = {STREAM_HEADER: job.id, **wait_headers(wait)}
    return Response(msgspec.json.encode(body), media_type="application/json", headers=headers)

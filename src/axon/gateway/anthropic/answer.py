"""Answers an accepted message, with a stream of events or one object. Knows no route and no prompt."""

from starlette.requests import Request
from starlette.responses import Response

from axon.gateway.anthropic.events import Writer
from axon.gateway.anthropic.message import message_body
from axon.gateway.http.middleware import REQUEST_ID
from axon.gateway.openai import answer as openai
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.headers import wants_ids, wants_ledger
from axon.gateway.turn.sse import StreamStart, stream


async def answer(request: Request, entry: Entry, *, streams: bool) -> Response:
    """Returns the response for the entry's turn: a stream if the client asked for one, otherwise one message."""
    return await openai.answer(request, entry, streams=streams, streamed=streamed, whole=message_body)


def streamed(request: Request, start: StreamStart) -> Response:
    """Streams the events past a number. All tokens are read from the first on, as blocks are numbered by them."""
    writer = Writer(
        start.job,
        after=start.after,
        with_ids=wants_ids(request),
        with_ledger=wants_ledger(request),
        wait=start.wait,
        request_id=request.scope[REQUEST_ID],
    )
    return stream(request, start, writer)

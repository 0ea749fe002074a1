"""Routes of /v1/streams/{id}: resume a stream at any seq after a disconnect, or stop it, whichever API it came by."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.reply import MessagesReply, ResponseReply
from axon.errors import InvalidInput
from axon.gateway.anthropic import answer as messages
from axon.gateway.openai.answer import stopped_body, streamed
from axon.gateway.openai.finding import find_any, find_stream
from axon.gateway.turn.cancel import stopped
from axon.gateway.turn.context import gateway_of, reader_of
from axon.gateway.turn.position import LAST_EVENT_ID, check_position, last_event_id, seq_of
from axon.gateway.turn.sse import StreamStart

router = APIRouter(tags=["streams"])


@router.get("/v1/streams/{stream_id}", summary="Continue a stream")
async def show(request: Request, stream_id: str, after: str = "") -> Response:
    """Streams the chunks past seq ``after``: those generated meanwhile at once, the rest as they come.

    The header ``Last-Event-ID`` means the same as ``after``, for clients that read event ids.
    """
    gateway = gateway_of(request)
    seq = seq_of(after, "after") if after else last_event_id(request)
    turn = await find_stream(request, stream_id)
    if isinstance(turn.job.reply, ResponseReply):
        raise InvalidInput(f"Continue a response with GET /v1/responses/{stream_id}?stream=true.", param="stream_id")
    await check_position(gateway.sessions.lookup, turn, seq, "after" if after else LAST_EVENT_ID)
    await gateway.follower.arrive(stream_id, reader_of(request, turn.job))
    gateway.metrics.streams.resumes.labels(result="ok").inc()
    start = StreamStart(job=turn.job, after=seq, found=turn)
    return messages.streamed(request, start) if isinstance(turn.job.reply, MessagesReply) else streamed(request, start)


@router.delete("/v1/streams/{stream_id}", summary="Stop a stream")
async def stop(request: Request, stream_id: str) -> dict[str, Any]:
    """Cancels the turn of a stream: a chat, a completion, a message or a response; one that has ended stays as it is.

    ``status`` says how it ended, or ``in_progress`` if that takes more than a few seconds. ``usage`` counts the tokens
    that are billed: those generated before the cancellation.
    """
    turn = await find_any(request, stream_id)
    return stopped_body(await stopped(gateway_of(request), turn), "stream")

"""/v1/streams/{id}: goes on with a stream after a disconnect, from any seq, as long as it is kept; or ends it."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.reply import ResponseReply
from axon.domain.turn import Turn
from axon.errors import InvalidInput, NotFound
from axon.gateway.http.errors import Gone
from axon.gateway.openai import best_of
from axon.gateway.openai.answer import stopped_body, streamed
from axon.gateway.turn.cancel import stopped
from axon.gateway.turn.context import find_turn, gateway_of, reader_of
from axon.gateway.turn.position import LAST_EVENT_ID, check_position, last_event_id, seq_of

router = APIRouter(tags=["streams"])


@router.get("/v1/streams/{stream_id}", summary="Continue a stream")
async def show(request: Request, stream_id: str, after: str = "") -> Response:
    """The stream's chunks past token ``after``: what was generated meanwhile at once, the rest as it comes.

    ``Last-Event-ID`` says the same as ``after``, for readers of event ids.
    """
    gateway = gateway_of(request)
    seq = seq_of(after, "after") if after else last_event_id(request)
    turn = await _find(request, stream_id)
    if isinstance(turn.job.reply, ResponseReply):
        raise InvalidInput(f"Continue a response with GET /v1/responses/{stream_id}?stream=true.", param="stream_id")
    if best_of.is_chosen_from(turn.job):
        raise InvalidInput("An answer with 'best_of' is not streamed.", param="stream_id")
    await check_position(gateway.sessions.lookup, turn, seq, "after" if after else LAST_EVENT_ID)
    await gateway.follower.arrive(stream_id, reader_of(request, turn.job))
    gateway.metrics.stream_resumes.labels(result="ok").inc()
    return streamed(request, turn.job, after=seq, found=turn)


@router.delete("/v1/streams/{stream_id}", summary="Stop a stream")
async def stop(request: Request, stream_id: str) -> dict[str, Any]:
    """Ends the turn of a stream, of whichever kind; one that has ended stays as it is.

    ``status`` says how it ended, or ``in_progress`` where it takes its time; ``usage`` is what it is billed: the
    tokens up to the stop.
    """
    turn = await find_turn(request, stream_id)
    if turn is None:
        raise _unknown(stream_id)
    return stopped_body(await stopped(gateway_of(request), turn), "stream")


async def _find(request: Request, stream_id: str) -> Turn:
    turn = await find_turn(request, stream_id)
    if turn is None:
        raise _unknown(stream_id)
    if turn.job.purged:
        raise Gone()
    return turn


def _unknown(stream_id: str) -> NotFound:
    return NotFound(f"No stream with id '{stream_id}'.", code="stream_not_found", param="stream_id")

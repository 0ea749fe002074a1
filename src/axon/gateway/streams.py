"""/v1/streams/{id}: goes on with a stream after a disconnect, from any seq, as long as it is kept; or ends it."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.errors import InvalidInput, NotFound
from axon.gateway import best
from axon.gateway.stopping import stopped, stopped_body
from axon.gateway.turns import find_job, gateway_of, identity_of, last_event_id, reader_of, seq_of, stream_response

router = APIRouter(tags=["streams"])


@router.get("/v1/streams/{stream_id}", summary="Continue a stream")
async def show(request: Request, stream_id: str, after: str = "") -> Response:
    """The stream's chunks past token ``after``: what was generated meanwhile at once, the rest as it comes.

    ``Last-Event-ID`` says the same as ``after``, for readers of event ids.
    """
    gateway = gateway_of(request)
    seq = seq_of(after, "after") if after else last_event_id(request)
    job = await find_job(request, stream_id)
    if job.reply.get("route") == "response":
        raise InvalidInput(f"Continue a response with GET /v1/responses/{stream_id}?stream=true.", param="stream_id")
    if best.is_chosen_from(job):
        raise InvalidInput("An answer with 'best_of' is not streamed.", param="stream_id")
    await gateway.follower.arrive(stream_id, reader_of(request, job))
    gateway.metrics.stream_resumes.labels(result="ok").inc()
    return stream_response(request, job, after=seq)


@router.delete("/v1/streams/{stream_id}", summary="Stop a stream")
async def stop(request: Request, stream_id: str) -> dict[str, Any]:
    """Ends the turn of a stream, of whichever kind; one that has ended stays as it is.

    ``status`` says how it ended, or ``in_progress`` where it takes its time; ``usage`` is what it is billed: the
    tokens up to the stop.
    """
    turn = await gateway_of(request).sessions.lookup.find(stream_id, asker=identity_of(request).tenant)
    if turn is None:
        raise NotFound(f"No stream with id '{stream_id}'.", code="stream_not_found", param="stream_id")
    return stopped_body(await stopped(gateway_of(request), turn), "stream")

"""GET /v1/streams/{id}: goes on with a stream after a disconnect, from any seq, as long as it is kept."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.reply import ResponseReply
from axon.errors import InvalidInput
from axon.gateway import best
from axon.gateway.turns import find_job, gateway_of, last_event_id, seq_of, stream_response

router = APIRouter(tags=["streams"])


@router.get("/v1/streams/{stream_id}", summary="Continue a stream")
async def show(request: Request, stream_id: str, after: str = "") -> Response:
    """The stream's chunks past token ``after``: what was generated meanwhile at once, the rest as it comes.

    ``Last-Event-ID`` says the same as ``after``, for readers of event ids.
    """
    gateway = gateway_of(request)
    seq = seq_of(after, "after") if after else last_event_id(request)
    job = await find_job(request, stream_id)
    if isinstance(job.reply, ResponseReply):
        raise InvalidInput(f"Continue a response with GET /v1/responses/{stream_id}?stream=true.", param="stream_id")
    if best.is_chosen_from(job):
        raise InvalidInput("An answer with 'best_of' is not streamed.", param="stream_id")
    await gateway.follower.arrive(stream_id)
    gateway.metrics.stream_resumes.labels(result="ok").inc()
    return stream_response(request, job, after=seq)

"""GET /v1/streams/{id}: goes on with a stream after a disconnect, from any seq, as long as it is kept."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.job import Job
from axon.domain.wire import decode
from axon.errors import InvalidInput, NotFound
from axon.gateway.problems import Gone
from axon.gateway.turns import gateway_of, identity_of, stream_response

router = APIRouter(tags=["streams"])

_MAX_SEQ = 1 << 53


@router.get("/v1/streams/{stream_id}", summary="Continue a stream")
async def show(request: Request, stream_id: str, after: str = "0") -> Response:
    """The stream's chunks past token ``after``: what was generated meanwhile at once, the rest as it comes."""
    gateway = gateway_of(request)
    seq = _seq(after)
    job = await _job(request, stream_id)
    await gateway.follower.arrive(stream_id)
    gateway.metrics.stream_resumes.labels(result="ok").inc()
    return stream_response(gateway, job, after=seq)


async def _job(request: Request, stream_id: str) -> Job:
    """The stream's job, if it is the asker's; a foreign one is answered exactly like an unknown one."""
    gateway, who = gateway_of(request), identity_of(request)
    view = await gateway.live.log.read(stream_id, after=_MAX_SEQ)
    if view is not None:
        job = decode(Job, view.body)
    else:
        turn = await gateway.store.turns.get(stream_id)
        if turn is None or turn.tenant != who.tenant:
            raise _unknown(stream_id)
        if turn.state.terminal and turn.usage.output_tokens != len(turn.tokens):
            raise Gone()
        job = turn.job
    if job.tenant != who.tenant:
        raise _unknown(stream_id)
    return job


def _unknown(stream_id: str) -> NotFound:
    return NotFound(f"No stream with id '{stream_id}'.", code="stream_not_found", param="stream_id")


def _seq(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < _MAX_SEQ):
        raise InvalidInput("'after' must be a token's seq: a whole number, 0 or more.", param="after")
    return int(text)

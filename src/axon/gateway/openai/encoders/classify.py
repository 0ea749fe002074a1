"""Route of /v1/classify: the likeliest class of each input. Knows no queue and no engine."""

import asyncio

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.model.embeds import BYTES_PER_NUMBER
from axon.gateway.http.schema import body_of_kind
from axon.gateway.openai.encoders.classify_requests import ClassifyRequest, class_body
from axon.gateway.openai.encoders.embedded import Embedded, embedded
from axon.gateway.openai.encoders.vectors import numbers_of
from axon.gateway.turn.asking import Api
from axon.gateway.turn.body import read_body
from axon.gateway.turn.context import gateway_of
from axon.gateway.turn.headers import STREAM_HEADER
from axon.gateway.vector_directives import CLASSIFY

router = APIRouter(tags=["embeddings"])
_CLASSIFY = Api("classify", "classify-")
_LARGE_BYTES = 64 << 10
"""An answer with more bytes of logits is written in a thread, so that it does not block the event loop."""


@router.post("/v1/classify", openapi_extra=body_of_kind(ClassifyRequest), summary="Classify texts")
async def classify(request: Request) -> Response:
    """Returns the likeliest class of each input, and the probabilities of all. They are not kept after that."""
    body, ask = await read_body(request, ClassifyRequest, CLASSIFY)
    ask.check()
    found, created = await embedded(request, body, _CLASSIFY, ask), int(gateway_of(request).clock.now())
    is_large = len(found.vectors) * found.embeds.dimensions * BYTES_PER_NUMBER > _LARGE_BYTES
    content = await asyncio.to_thread(_written, ask, found, created) if is_large else _written(ask, found, created)
    return Response(content, media_type="application/json", headers={STREAM_HEADER: found.id})


def _written(ask: ClassifyRequest, found: Embedded, created: int) -> bytes:
    classes = found.embeds.classes
    assert classes is not None
    data = [
        class_body(index, classes, list(numbers_of(vector)), use_activation=ask.use_activation is not False)
        for index, vector in enumerate(found.vectors)
    ]
    body = {
        "id": found.id,
        "object": "list",
        "created": created,
        "model": ask.model,
        "data": data,
        "usage": {"prompt_tokens": found.num_tokens, "total_tokens": found.num_tokens},
    }
    return msgspec.json.encode(body)

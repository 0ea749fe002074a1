"""Route of /v1/embeddings: a vector for each input. Knows no queue and no engine."""

import asyncio

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.model.embeds import BYTES_PER_NUMBER
from axon.gateway.http.schema import body_of_kind
from axon.gateway.openai.encoders.embedded import Embedded, embedded
from axon.gateway.openai.encoders.embedding_requests import EmbeddingRequest
from axon.gateway.openai.encoders.vectors import cut, embedding_bodies
from axon.gateway.turn.asking import Api
from axon.gateway.turn.body import read_body
from axon.gateway.turn.headers import STREAM_HEADER
from axon.gateway.vector_directives import EMBEDDINGS

router = APIRouter(tags=["embeddings"])
_EMBEDDING = Api("embedding", "embd-")

_LARGE_BYTES = 64 << 10
"""An answer with more bytes of vectors is written in a thread, so that it does not block the event loop."""


@router.post("/v1/embeddings", openapi_extra=body_of_kind(EmbeddingRequest), summary="Create embeddings")
async def create(request: Request) -> Response:
    """Returns a vector for each input, in their order. They are not kept after that."""
    body, ask = await read_body(request, EmbeddingRequest, EMBEDDINGS)
    ask.check()
    found = await embedded(request, body, _EMBEDDING, ask)
    is_large = len(found.vectors) * found.embeds.dimensions * BYTES_PER_NUMBER > _LARGE_BYTES
    content = await asyncio.to_thread(_written, ask, found) if is_large else _written(ask, found)
    return Response(content, media_type="application/json", headers={STREAM_HEADER: found.id})


def _written(ask: EmbeddingRequest, found: Embedded) -> bytes:
    size = ask.size(found.embeds)
    vectors = [cut(vector, size) for vector in found.vectors]
    body = {
        "object": "list",
        "data": embedding_bodies(vectors, is_base64=ask.encoding_format == "base64"),
        "model": ask.model,
        "usage": {"prompt_tokens": found.num_tokens, "total_tokens": found.num_tokens},
    }
    return msgspec.json.encode(body)

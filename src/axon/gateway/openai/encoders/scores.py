"""Routes of /v1/rerank and /v1/score: texts compared by their vectors, or by a cross-encoder. Knows no queue."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.gateway.http.schema import body_of_kind
from axon.gateway.openai.encoders.embedded import Embedded, embedded
from axon.gateway.openai.encoders.score_requests import RerankRequest, ScoreRequest
from axon.gateway.openai.encoders.vectors import cosine, numbers_of
from axon.gateway.turn.asking import Api
from axon.gateway.turn.body import read_body
from axon.gateway.turn.headers import STREAM_HEADER
from axon.gateway.vector_directives import RERANK, SCORE

router = APIRouter(tags=["embeddings"])
_RERANK, _SCORE = Api("rerank", "rerank-"), Api("score", "score-")


@router.post("/v1/rerank", openapi_extra=body_of_kind(RerankRequest), summary="Rerank documents")
async def rerank(request: Request) -> Response:
    """Returns the documents in the order of their relevance to the query, the most relevant first."""
    body, ask = await read_body(request, RerankRequest, RERANK)
    ask.check()
    found = await embedded(request, body, _RERANK, ask)
    scores = await _scores(found, [(0, 1 + index) for index in range(len(ask.documents))], ask.use_activation)
    order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))[: ask.top_n]
    results: list[dict[str, Any]] = [{"index": index, "relevance_score": scores[index]} for index in order]
    if ask.return_documents is not False:
        results = [{**each, "document": {"text": ask.documents[each["index"]]}} for each in results]
    return _answer(found, {"id": found.id, "model": ask.model, "results": results})


@router.post("/v1/score", openapi_extra=body_of_kind(ScoreRequest), summary="Score pairs of texts")
async def score(request: Request) -> Response:
    """Returns the similarity of each pair of texts: a cosine, from -1 to 1, or the score of a cross-encoder."""
    body, ask = await read_body(request, ScoreRequest, SCORE)
    ask.check()
    found = await embedded(request, body, _SCORE, ask)
    scores = await _scores(found, ask.pairs, ask.use_activation)
    data = [{"index": index, "object": "score", "score": each} for index, each in enumerate(scores)]
    return _answer(found, {"id": found.id, "object": "list", "model": ask.model, "data": data})


async def _scores(found: Embedded, pairs: Sequence[tuple[int, int]], use_activation: bool | None) -> list[float]:
    """The score of each pair: what a cross-encoder found for it, or the cosine of the vectors at its two places."""
    if classes := found.embeds.classes:
        logits = [list(numbers_of(vector)) for vector in found.vectors]
        return [(each if use_activation is False else classes.scores(each))[0] for each in logits]
    return await asyncio.to_thread(lambda: [cosine(found.vectors[a], found.vectors[b]) for a, b in pairs])


def _answer(found: Embedded, body: dict[str, Any]) -> Response:
    body["usage"] = {"prompt_tokens": found.num_tokens, "total_tokens": found.num_tokens}
    return Response(msgspec.json.encode(body), media_type="application/json", headers={STREAM_HEADER: found.id})

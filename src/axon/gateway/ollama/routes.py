"""Routes of Ollama's API that answer: /api/chat, /api/generate and /api/embed. Knows no queue and no engine."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.gateway.directives import OLLAMA_CHAT, OLLAMA_EMBED, OLLAMA_GENERATE
from axon.gateway.http.schema import body_of_kind
from axon.gateway.ollama.lines import Writer, loaded_body, vectors_body, whole_body
from axon.gateway.ollama.requests import OllamaChatRequest, OllamaEmbedRequest, OllamaGenerateRequest, OllamaRequest
from axon.gateway.openai import chat as chats
from axon.gateway.openai import completions
from axon.gateway.openai.answer import answer
from axon.gateway.openai.encoders.embedded import embedded
from axon.gateway.turn.asking import Api
from axon.gateway.turn.body import read_body
from axon.gateway.turn.context import find_model, gateway_of
from axon.gateway.turn.counting import count_request
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.headers import STREAM_HEADER
from axon.gateway.turn.sse import StreamStart, stream

router = APIRouter(tags=["ollama"])
_CHAT, _GENERATE = Api("ollama-chat", "chatcmpl-"), Api("ollama-generate", "chatcmpl-")
_EMBED = Api("ollama-embed", "embd-")
_NDJSON = "application/x-ndjson"
_RAW_MAX_TOKENS = 128
"""A raw prompt is continued by this many tokens at most, unless ``num_predict`` says otherwise."""


@router.post("/api/chat", openapi_extra=body_of_kind(OllamaChatRequest), summary="Chat, as Ollama's clients ask")
async def chat(request: Request) -> Response:
    """Returns the model's next message in a conversation, by default streamed, one JSON object a line."""
    body, ask = await read_body(request, OllamaChatRequest, OLLAMA_CHAT)
    if not ask.messages:
        return await _loaded(request, ask, generates=False)
    entry = await chats.accepted(request, body, ask.chat(), _CHAT)
    return await _answer(request, entry, ask.streams, generates=False, with_logprobs=bool(ask.logprobs))


@router.post(
    "/api/generate",
    openapi_extra=body_of_kind(OllamaGenerateRequest),
    summary="Answer a prompt, as Ollama's clients ask",
)
async def generate(request: Request) -> Response:
    """Returns the model's answer to a prompt, by default streamed, one JSON object a line."""
    body, ask = await read_body(request, OllamaGenerateRequest, OLLAMA_GENERATE)
    if not ask.prompt:
        return await _loaded(request, ask, generates=True)
    if ask.raw:
        entry = await completions.accepted(request, body, ask.completion(_RAW_MAX_TOKENS), _GENERATE)
    else:
        entry = await chats.accepted(request, body, ask.chat(), _GENERATE)
    return await _answer(request, entry, ask.streams, generates=True, with_logprobs=bool(ask.logprobs))


@router.post(
    "/api/embed", openapi_extra=body_of_kind(OllamaEmbedRequest), summary="Embed texts, as Ollama's clients ask"
)
async def embed(request: Request) -> Response:
    """Returns a vector for each text, in their order."""
    clock = gateway_of(request).clock
    started = clock.monotonic()
    body, ask = await read_body(request, OllamaEmbedRequest, OLLAMA_EMBED)
    wanted = ask.embedding()
    found = await embedded(request, body, _EMBED, wanted)
    took_s = clock.monotonic() - started
    content = await asyncio.to_thread(vectors_body, ask.model, found, size=wanted.size(found.embeds), took_s=took_s)
    return Response(content, media_type="application/json", headers={STREAM_HEADER: found.id})


async def _loaded(request: Request, ask: OllamaRequest, *, generates: bool) -> Response:
    """Answers a request that only asks that the model be loaded; whether it is, control decides."""
    find_model(request, ask.name)
    await count_request(request)
    body = loaded_body(ask.model, gateway_of(request).clock.now(), generates=generates)
    return Response(msgspec.json.encode(body) + b"\n", media_type=_NDJSON if ask.streams else "application/json")


async def _answer(request: Request, entry: Entry, streams: bool, *, generates: bool, with_logprobs: bool) -> Response:
    def streamed(request: Request, start: StreamStart) -> Response:
        writer = Writer(start.job, generates=generates, with_logprobs=with_logprobs)
        return stream(request, start, writer, media_type=_NDJSON)

    def whole(job: Job, chunks: Sequence[Chunk], *, with_ledger: bool = False) -> dict[str, Any]:
        return whole_body(job, chunks, generates=generates, with_logprobs=with_logprobs)

    return await answer(request, entry, streams=streams, streamed=streamed, whole=whole)

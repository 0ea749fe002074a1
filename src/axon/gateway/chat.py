"""POST /v1/chat/completions."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.dispatch.affinity import chat_affinity
from axon.gateway.openai import ChatRequest, parse
from axon.gateway.schema import body_of_kind
from axon.gateway.turns import answer, gateway_of, identity_of, open_turn, read_body

router = APIRouter(tags=["chat"])


@router.post("/v1/chat/completions", openapi_extra=body_of_kind(ChatRequest), summary="Create a chat completion")
async def create(request: Request) -> Response:
    """The model's next message in a conversation, whole or streamed token by token."""
    gateway = gateway_of(request)
    body = await read_body(request, gateway.config)
    ask = parse(ChatRequest, body)
    messages = ask.texts()
    job = await open_turn(
        request,
        ask,
        body,
        route="chat",
        prefix="chatcmpl-",
        max_tokens=ask.max_completion_tokens or ask.max_tokens,
        prompt=lambda: gateway.prompts.chat(messages),
        affinity=chat_affinity(identity_of(request).tenant, messages),
    )
    return await answer(request, job, stream=bool(ask.stream))

"""/v1/chat/completions: asked, cancelled, and where it is stored, read again and erased."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.dispatch.affinity import chat_affinity
from axon.domain.reply import ChatReply
from axon.domain.turn import Turn, TurnState
from axon.errors import NotFound
from axon.gateway import frames
from axon.gateway.openai import NOT_YET, ChatRequest
from axon.gateway.schema import body_of_kind
from axon.gateway.stopping import stopped, stopped_body
from axon.gateway.turns import (
    answer,
    find_turn,
    gateway_of,
    gave_back,
    identity_of,
    open_turn,
    read_body,
    wants_ledger,
)

router = APIRouter(tags=["chat"])


@router.post("/v1/chat/completions", openapi_extra=body_of_kind(ChatRequest), summary="Create a chat completion")
async def create(request: Request) -> Response:
    """The model's next message in a conversation, whole or streamed token by token."""
    gateway = gateway_of(request)
    body = await read_body(request, gateway.config)
    ask = await gateway.bodies.parse(ChatRequest, body, NOT_YET)
    messages = ask.texts()

    async def prompts() -> Sequence[Sequence[int]]:
        return (await gateway.prompts.chat(messages),)

    job = await open_turn(
        request,
        ask,
        body,
        route="chat",
        prefix="chatcmpl-",
        max_tokens=ask.max_completion_tokens or ask.max_tokens,
        prompts=prompts,
        prompt_field="messages",
        reply=lambda: ChatReply(
            model=ask.model, include_usage=ask.include_usage, continuous_usage=ask.continuous_usage
        ),
        affinity=chat_affinity(identity_of(request).tenant, messages),
    )
    return await answer(request, job, stream=bool(ask.stream))


@router.get("/v1/chat/completions/{completion_id}", summary="Retrieve a stored chat completion")
async def show(request: Request, completion_id: str) -> dict[str, Any]:
    """The answer to a chat that was sent with ``store: true``, once it is complete."""
    turn = await _find(request, completion_id)
    if turn.state is not TurnState.COMPLETED:
        raise _unknown(completion_id)
    return frames.whole(turn.job, [turn.chunk()], with_ledger=wants_ledger(request))


@router.delete("/v1/chat/completions/{completion_id}", summary="Delete a stored chat completion")
async def delete(request: Request, completion_id: str) -> dict[str, Any]:
    """Erases a chat that was sent with ``store: true``, and its words; one that runs is cancelled."""
    turn = await _find(request, completion_id)
    await gateway_of(request).sessions.erasure.turn(turn)
    gave_back(request)
    return {"id": completion_id, "object": "chat.completion.deleted", "deleted": True}


@router.post("/v1/chat/completions/{completion_id}/cancel", summary="Cancel a chat completion")
async def cancel(request: Request, completion_id: str) -> dict[str, Any]:
    """Ends a chat completion that runs, stored or not; one that has ended stays as it is.

    ``status`` says how it ended, or ``in_progress`` where it takes its time; ``usage`` is what it is billed: the
    tokens up to the stop.
    """
    turn = await find_turn(request, completion_id)
    if turn is None or not isinstance(turn.job.reply, ChatReply):
        raise _unknown(completion_id)
    return stopped_body(await stopped(gateway_of(request), turn), "chat.completion")


async def _find(request: Request, completion_id: str) -> Turn:
    """A stored chat of the asker's own; every other id is answered exactly like an unknown one."""
    turn = await find_turn(request, completion_id)
    if turn is None or turn.job.purged or not isinstance(turn.job.reply, ChatReply) or not turn.job.retain:
        raise _unknown(completion_id)
    return turn


def _unknown(completion_id: str) -> NotFound:
    return NotFound(
        f"Chat completion with id '{completion_id}' not found.",
        code="chat_completion_not_found",
        param="completion_id",
    )

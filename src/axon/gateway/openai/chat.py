"""Routes of /v1/chat/completions: create and cancel; read and delete what is stored. Knows no queue and no engine."""

from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.dispatch.affinity import chat_affinity
from axon.domain.reply import ChatReply
from axon.domain.turn import Turn, TurnState
from axon.errors import NotFound
from axon.gateway.directives import CHAT
from axon.gateway.http.schema import body_of_kind
from axon.gateway.openai import frames
from axon.gateway.openai.answer import answer, stopped_body
from axon.gateway.openai.formats import grammar_of
from axon.gateway.openai.requests import ChatRequest
from axon.gateway.openai.sentences import blaming
from axon.gateway.openai.stored_messages import items_of_chat
from axon.gateway.turn.asking import Api, admitted
from axon.gateway.turn.body import read_body
from axon.gateway.turn.calling import planned
from axon.gateway.turn.cancel import stopped
from axon.gateway.turn.context import find_model, find_turn, gateway_of, identity_of
from axon.gateway.turn.counting import note_erased
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.headers import wants_ledger
from axon.gateway.turn.job import job_of
from axon.gateway.turn.target import target_of
from axon.sessions.new_job import Work

router = APIRouter(tags=["chat"])
PREFIX = "chatcmpl-"
"""The prefix of a chat's id."""
_CHAT = Api("chat", PREFIX)


@router.post("/v1/chat/completions", openapi_extra=body_of_kind(ChatRequest), summary="Create a chat completion")
async def create(request: Request) -> Response:
    """Returns the model's next message in a conversation, whole or streamed token by token."""
    entry, streams = await _accepted(request)
    return await answer(request, entry, streams=streams)


async def _accepted(request: Request) -> tuple[Entry, bool]:
    """Returns the entry of the accepted turn, and whether its answer is streamed. The body is not held any longer."""
    body, ask = await read_body(request, ChatRequest, CHAT)
    return await accepted(request, body, ask, _CHAT), bool(ask.stream)


async def accepted(request: Request, body: bytes, ask: ChatRequest, api: Api) -> Entry:
    """Returns the entry of the accepted turn of a chat, which another API may have asked for in its own words."""
    gateway, tenant = gateway_of(request), identity_of(request).tenant
    ask.check()
    messages, toolbox = ask.texts(), ask.toolbox
    wanted = find_model(request, ask.model, with_fallbacks=True)
    streams, keeps = bool(ask.stream), bool(ask.store)
    async with admitted(request, body, api, wanted, tier=ask.tier, keeps=keeps, streams=streams) as entry:
        if entry.is_new:
            form = await grammar_of(gateway.grammars.of(tenant), ask.form)
            with blaming("messages", "max_tokens"):
                target = await target_of(request, entry, wanted, prompt_cache_key=ask.prompt_cache_key)
                plan = await planned(gateway.grammars.of(tenant), toolbox, target, form)
                prompts = target.prompts.with_options(ask.template_options)
                prompt_ids = await prompts.chat(messages, tools=plan.tools, dialect=plan.dialect)
                ask.check_scored(len(prompt_ids))
                reasoning = target.reasoning(prompt_ids)
                sampling = ask.sampling(ask.max_completion_tokens or ask.max_tokens, target.served)
                work = Work(
                    prompts=[prompt_ids],
                    num_choices=ask.num_choices,
                    sampling=plan.constrain(sampling, reasoning),
                    seed=ask.seed,
                    reasoning=reasoning,
                    calls=plan,
                    affinity=chat_affinity(tenant, messages),
                    reply=_reply(ask),
                )
                job = job_of(request, entry, target, work)
            await entry.accept(replace(job, items=tuple(items_of_chat(entry.id, ask.messages))) if keeps else job)
    return entry


def _reply(ask: ChatRequest) -> ChatReply:
    return ChatReply(
        model=ask.model,
        include_usage=ask.include_usage,
        continuous_usage=ask.continuous_usage,
        prompt_logprobs=ask.prompt_logprobs,
    )


@router.get("/v1/chat/completions/{completion_id}", summary="Retrieve a stored chat completion")
async def show(request: Request, completion_id: str) -> dict[str, Any]:
    """Returns a complete answer to a chat that was sent with ``store: true``."""
    turn = await find_stored(request, completion_id)
    if turn.state is not TurnState.COMPLETED:
        raise _unknown(completion_id)
    return frames.whole(turn.job, [turn.chunk()], with_ledger=wants_ledger(request))


@router.delete("/v1/chat/completions/{completion_id}", summary="Delete a stored chat completion")
async def delete(request: Request, completion_id: str) -> dict[str, Any]:
    """Deletes a chat that was sent with ``store: true``, and all its text; a chat that runs is cancelled."""
    turn = await find_stored(request, completion_id)
    await gateway_of(request).sessions.erasure.turn(turn)
    note_erased(request)
    return {"id": completion_id, "object": "chat.completion.deleted", "deleted": True}


@router.post("/v1/chat/completions/{completion_id}/cancel", summary="Cancel a chat completion")
async def cancel(request: Request, completion_id: str) -> dict[str, Any]:
    """Cancels a chat completion that runs, stored or not; one that has ended stays as it is.

    ``status`` says how it ended, or ``in_progress`` if that takes more than a few seconds. ``usage`` counts the tokens
    that are billed: those generated before the cancellation.
    """
    turn = await find_turn(request, completion_id)
    if turn is None or not isinstance(turn.job.reply, ChatReply):
        raise _unknown(completion_id)
    return stopped_body(await stopped(gateway_of(request), turn), "chat.completion")


async def find_stored(request: Request, completion_id: str) -> Turn:
    """Returns a stored chat of the caller's own tenant; raises the same ``NotFound`` for every other id."""
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

"""Routes of /v1/completions: create and cancel. Knows no queue and no engine."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.reply import CompletionReply
from axon.errors import NotFound
from axon.gateway.directives import COMPLETIONS
from axon.gateway.http.schema import body_of_kind
from axon.gateway.openai.answer import answer, stopped_body
from axon.gateway.openai.formats import grammar_of
from axon.gateway.openai.requests import CompletionRequest, Prompt
from axon.gateway.openai.sentences import blaming
from axon.gateway.turn.asking import Api, admitted
from axon.gateway.turn.body import read_body
from axon.gateway.turn.cancel import stopped
from axon.gateway.turn.context import find_model, find_turn, gateway_of, identity_of
from axon.gateway.turn.entry import Entry
from axon.gateway.turn.job import job_of
from axon.gateway.turn.target import target_of
from axon.sessions.new_job import Work
from axon.sessions.prompt import Prompts

router = APIRouter(tags=["completions"])
_COMPLETION = Api("completion", "cmpl-")

_DEFAULT_MAX_TOKENS = 16
"""OpenAI's default for completions."""


@router.post("/v1/completions", openapi_extra=body_of_kind(CompletionRequest), summary="Create a completion")
async def create(request: Request) -> Response:
    """Returns the text that follows a prompt, or each of several prompts, whole or streamed token by token."""
    entry, streams = await _accepted(request)
    return await answer(request, entry, streams=streams)


async def _accepted(request: Request) -> tuple[Entry, bool]:
    """Returns the entry of the accepted turn, and whether its answer is streamed. The body is not held any longer."""
    body, ask = await read_body(request, CompletionRequest, COMPLETIONS)
    return await accepted(request, body, ask, _COMPLETION), bool(ask.stream)


async def accepted(request: Request, body: bytes, ask: CompletionRequest, api: Api) -> Entry:
    """Returns the entry of the accepted turn of a completion, which another API may have asked for in its own words."""
    gateway, tenant = gateway_of(request), identity_of(request).tenant
    ask.check()
    asked, wanted = ask.prompts(), find_model(request, ask.model, with_fallbacks=True)
    streams, keeps = bool(ask.stream), bool(ask.store)
    async with admitted(request, body, api, wanted, tier=ask.tier, keeps=keeps, streams=streams) as entry:
        if entry.is_new:
            grammar = await grammar_of(gateway.grammars.of(tenant), ask.form)
            with blaming("prompt", "max_tokens"):
                target = await target_of(request, entry, wanted)
                work = Work(
                    prompts=await _tokenised(target.prompts, ask, asked),
                    num_choices=ask.num_choices,
                    sampling=ask.sampling(
                        _max_tokens(ask), target.served, grammar=grammar.after("") if grammar else ""
                    ),
                    seed=ask.seed,
                    reply=_reply(target.prompts, ask, asked),
                )
                job = job_of(request, entry, target, work)
            await entry.accept(job)
    return entry


@router.post("/v1/completions/{completion_id}/cancel", summary="Cancel a completion")
async def cancel(request: Request, completion_id: str) -> dict[str, Any]:
    """Cancels a completion that runs; one that has ended stays as it is.

    ``status`` says how it ended, or ``in_progress`` if that takes more than a few seconds. ``usage`` counts the tokens
    that are billed: those generated before the cancellation.
    """
    turn = await find_turn(request, completion_id)
    if turn is None or not isinstance(turn.job.reply, CompletionReply):
        raise NotFound(
            f"Completion with id '{completion_id}' not found.", code="completion_not_found", param="completion_id"
        )
    return stopped_body(await stopped(gateway_of(request), turn), "text_completion")


def _max_tokens(ask: CompletionRequest) -> int:
    return _DEFAULT_MAX_TOKENS if ask.max_tokens is None else max(1, ask.max_tokens)


async def _tokenised(prompts: Prompts, ask: CompletionRequest, asked: Sequence[Prompt]) -> Sequence[Sequence[int]]:
    """Returns the token ids of each prompt. They are tokenised one after another, so that a list of many prompts does
    not occupy the tokenizer's threads while other requests wait."""
    found = [await prompts.text(prompt) if isinstance(prompt, str) else prompts.ids(prompt) for prompt in asked]
    ask.check_scored(sum(map(len, found)))
    return found


def _reply(prompts: Prompts, ask: CompletionRequest, asked: Sequence[Prompt]) -> CompletionReply:
    return CompletionReply(
        model=ask.model,
        include_usage=ask.include_usage,
        continuous_usage=ask.continuous_usage,
        echo=_texts(prompts, asked) if ask.echo else (),
        prompt_only=ask.max_tokens == 0,
        best=(ask.n or 1) if ask.is_chosen_from else 0,
        hides_logprobs=ask.is_chosen_from and ask.logprobs is None,
        prompt_logprobs=ask.prompt_logprobs,
    )


def _texts(prompts: Prompts, asked: Sequence[Prompt]) -> tuple[str, ...]:
    """Returns the prompts as text, which ``echo`` puts before the answers."""
    decode = prompts.tokenizer.decode
    return tuple(prompt if isinstance(prompt, str) else decode(prompt) for prompt in asked)

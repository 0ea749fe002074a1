"""/v1/completions: asked and cancelled."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.reply import CompletionReply
from axon.errors import NotFound
from axon.gateway.openai import NOT_YET, CompletionRequest, Prompt
from axon.gateway.schema import body_of_kind
from axon.gateway.stopping import stopped, stopped_body
from axon.gateway.turns import Gateway, answer, find_turn, gateway_of, open_turn, read_body

router = APIRouter(tags=["completions"])

_DEFAULT_MAX_TOKENS = 16  # OpenAI's own


@router.post("/v1/completions", openapi_extra=body_of_kind(CompletionRequest), summary="Create a completion")
async def create(request: Request) -> Response:
    """The text that follows a prompt, or each of several, whole or streamed token by token."""
    gateway = gateway_of(request)
    body = await read_body(request, gateway.config)
    ask = await gateway.bodies.parse(CompletionRequest, body, NOT_YET)
    ask.check()
    prompts = ask.prompts()
    job = await open_turn(
        request,
        ask,
        body,
        route="completion",
        prefix="cmpl-",
        max_tokens=_DEFAULT_MAX_TOKENS if ask.max_tokens is None else max(1, ask.max_tokens),
        prompt_field="prompt",
        prompts=lambda: _tokenised(gateway, ask, prompts),
        reply=lambda: _reply(gateway, ask, prompts),
    )
    return await answer(request, job, stream=bool(ask.stream))


@router.post("/v1/completions/{completion_id}/cancel", summary="Cancel a completion")
async def cancel(request: Request, completion_id: str) -> dict[str, Any]:
    """Ends a completion that runs; one that has ended stays as it is.

    ``status`` says how it ended, or ``in_progress`` where it takes its time; ``usage`` is what it is billed: the
    tokens up to the stop.
    """
    turn = await find_turn(request, completion_id)
    if turn is None or not isinstance(turn.job.reply, CompletionReply):
        raise NotFound(
            f"Completion with id '{completion_id}' not found.", code="completion_not_found", param="completion_id"
        )
    return stopped_body(await stopped(gateway_of(request), turn), "text_completion")


async def _tokenised(gateway: Gateway, ask: CompletionRequest, prompts: Sequence[Prompt]) -> Sequence[Sequence[int]]:
    """One after the other: a long list keeps nobody else's prompt waiting."""
    found = [
        await gateway.prompts.text(prompt) if isinstance(prompt, str) else gateway.prompts.ids(prompt)
        for prompt in prompts
    ]
    ask.check_scored(sum(map(len, found)))
    return found


def _reply(gateway: Gateway, ask: CompletionRequest, prompts: Sequence[Prompt]) -> CompletionReply:
    return CompletionReply(
        model=ask.model,
        include_usage=ask.include_usage,
        continuous_usage=ask.continuous_usage,
        echo=_texts(gateway, prompts) if ask.echo else (),
        prompt_only=ask.max_tokens == 0,
        best=(ask.n or 1) if ask.is_chosen_from else 0,
        hides_logprobs=ask.is_chosen_from and ask.logprobs is None,
    )


def _texts(gateway: Gateway, prompts: Sequence[Prompt]) -> tuple[str, ...]:
    """The prompts as the answers begin with them."""
    decode = gateway.prompts.tokenizer.decode
    return tuple(prompt if isinstance(prompt, str) else decode(prompt) for prompt in prompts)

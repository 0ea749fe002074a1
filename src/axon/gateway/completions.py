"""POST /v1/completions."""

from collections.abc import Sequence

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.domain.reply import CompletionReply
from axon.gateway.openai import NOT_YET, CompletionRequest, Prompt
from axon.gateway.schema import body_of_kind
from axon.gateway.turns import Gateway, answer, gateway_of, open_turn, read_body

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

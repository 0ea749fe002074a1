"""/v1/completions: asked and cancelled."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.errors import NotFound
from axon.gateway import best
from axon.gateway.openai import CompletionRequest, Prompt, parse
from axon.gateway.schema import body_of_kind
from axon.gateway.stopping import stopped, stopped_body
from axon.gateway.turns import Gateway, answer, gateway_of, identity_of, open_turn, read_body

router = APIRouter(tags=["completions"])

_DEFAULT_MAX_TOKENS = 16  # OpenAI's own


@router.post("/v1/completions", openapi_extra=body_of_kind(CompletionRequest), summary="Create a completion")
async def create(request: Request) -> Response:
    """The text that follows a prompt, or each of several, whole or streamed token by token."""
    gateway = gateway_of(request)
    body = await read_body(request, gateway.config)
    ask = parse(CompletionRequest, body)
    ask.check()
    prompts = ask.prompts()
    job = await open_turn(
        request,
        ask,
        body,
        route="completion",
        prefix="cmpl-",
        max_tokens=_DEFAULT_MAX_TOKENS if ask.max_tokens is None else max(1, ask.max_tokens),
        prompts=lambda: _tokenised(gateway, ask, prompts),
        options=lambda: {**(_echo(gateway, ask, prompts) if ask.echo else {}), **best.options(ask)},
    )
    return await answer(request, job, stream=bool(ask.stream))


@router.post("/v1/completions/{completion_id}/cancel", summary="Cancel a completion")
async def cancel(request: Request, completion_id: str) -> dict[str, Any]:
    """Ends a completion that runs; one that has ended stays as it is.

    ``status`` says how it ended, or ``in_progress`` where it takes its time; ``usage`` is what it is billed: the
    tokens up to the stop.
    """
    turn = await gateway_of(request).sessions.lookup.find(completion_id, asker=identity_of(request).tenant)
    if turn is None or turn.job.reply.get("route") != "completion":
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


def _echo(gateway: Gateway, ask: CompletionRequest, prompts: Sequence[Prompt]) -> dict[str, Any]:
    """The prompts as the answers begin with them."""
    texts = [prompt if isinstance(prompt, str) else gateway.prompts.tokenizer.decode(prompt) for prompt in prompts]
    return {"echo": texts if len(texts) > 1 else texts[0], "prompt_only": ask.max_tokens == 0}

"""POST /v1/completions."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from axon.errors import InvalidInput, Unsupported
from axon.gateway.openai import CompletionRequest, parse
from axon.gateway.schema import body_of_kind
from axon.gateway.turns import Gateway, answer, gateway_of, open_turn, read_body

router = APIRouter(tags=["completions"])

_DEFAULT_MAX_TOKENS = 16  # OpenAI's own


@router.post("/v1/completions", openapi_extra=body_of_kind(CompletionRequest), summary="Create a completion")
async def create(request: Request) -> Response:
    """The text that follows a prompt, whole or streamed token by token."""
    gateway = gateway_of(request)
    body = await read_body(request, gateway.config)
    ask = parse(CompletionRequest, body)
    if ask.best_of not in (None, ask.n or 1):
        raise Unsupported("'best_of' other than 'n' is not supported by this server.", param="best_of")
    job = await open_turn(
        request,
        ask,
        body,
        route="completion",
        prefix="cmpl-",
        max_tokens=ask.max_tokens or _DEFAULT_MAX_TOKENS,
        prompt=lambda: _prompt_ids(gateway, ask.prompt),
        options=lambda: {"echo": _echoed(gateway, ask.prompt)} if ask.echo else {},
    )
    return await answer(request, job, stream=bool(ask.stream))


Prompt = str | list[str] | list[int] | list[list[int]]


def _echoed(gateway: Gateway, prompt: Prompt) -> str:
    """The prompt as the answer begins with it."""
    if isinstance(prompt, str):
        return prompt
    first = prompt[0] if prompt else ""
    if isinstance(first, int):
        return gateway.prompts.tokenizer.decode(token for token in prompt if isinstance(token, int))
    return _echoed(gateway, first)


async def _prompt_ids(gateway: Gateway, prompt: Prompt) -> list[int]:
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        if len(prompt) > 1:
            raise Unsupported("A list of several prompts is not supported by this server yet.", param="prompt")
        return await _prompt_ids(gateway, prompt[0])
    if not prompt:
        raise InvalidInput("'prompt' must not be empty.", param="prompt")
    if isinstance(prompt, str):
        return await gateway.prompts.text(prompt)
    return gateway.prompts.ids([token for token in prompt if isinstance(token, int)])

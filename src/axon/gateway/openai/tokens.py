"""Routes /tokenize and /detokenize: text to a model's token ids and back, in vLLM's shapes. Knows no engine."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from axon.errors import ContextTooLong, InvalidInput
from axon.gateway.directives import DETOKENIZE, TOKENIZE
from axon.gateway.http.body import Many, Wire
from axon.gateway.http.schema import body_of_kind
from axon.gateway.offers.offer import Offer
from axon.gateway.openai.requests import ChatRequest, Message
from axon.gateway.openai.sentences import blaming
from axon.gateway.openai.template_options import TemplateOptions
from axon.gateway.openai.tools import MAX_TOOLS, ChatTool
from axon.gateway.turn.body import read_body
from axon.gateway.turn.context import find_model, gateway_of, identity_of
from axon.gateway.turn.counting import count_request
from axon.sessions.prompt import Prompts
from axon.text.tools.plan import plan_of

router = APIRouter(tags=["tokens"])
_MAX_WINDOWS, _MAX_IDS = 8, 1 << 17
"""Text is tokenised, and ids are turned into text, up to this many context windows and this many ids, whichever is
less. One whole window is always taken."""


class TokenizeRequest(Wire):
    """Body of POST /tokenize: a prompt, or the messages of a chat."""

    model: str | None = None
    """The deployment's name; it may be left out where there is only one."""
    prompt: str | None = None
    """The text of a completion's prompt."""
    messages: Annotated[Many[Message], Field(min_length=1, max_length=10_000)] | None = None
    """The messages of a chat, which are rendered with the model's template up to where its answer begins."""
    tools: Annotated[Many[ChatTool], Field(max_length=MAX_TOOLS)] | None = None
    chat_template_kwargs: TemplateOptions | None = None
    add_special_tokens: bool | None = None
    """Whether a prompt gets the model's begin-of-text token, which is the default."""
    return_token_strs: bool | None = None
    """Adds the text of every token as ``token_strs``."""


class DetokenizeRequest(Wire):
    """Body of POST /detokenize."""

    model: str | None = None
    tokens: Many[Annotated[int, Field(ge=0, lt=1 << 31)]]
    """Token ids."""


@router.post(
    "/tokenize",
    response_model=dict[str, Any],
    openapi_extra=body_of_kind(TokenizeRequest),
    summary="Tokenise a prompt or a chat",
)
async def tokenize(request: Request) -> Response:
    """Returns the token ids of a prompt or a chat, as a request with it would have them, and their number."""
    _, ask = await read_body(request, TokenizeRequest, TOKENIZE)
    if (ask.prompt is None) == (ask.messages is None):
        raise InvalidInput("Send either 'prompt' or 'messages'.", param="prompt")
    offer = _offer(request, ask.model)
    prompts = await offer.prompts(offer.deployment.stable)
    await count_request(request)
    field = "prompt" if ask.messages is None else "messages"
    try:
        with blaming(field, "max_tokens"):
            ids = await (_of_chat(offer, prompts, ask) if ask.messages else _of_text(prompts, ask))
    except ContextTooLong:  # of what is tokenised here, which is more than the model's context
        raise ContextTooLong(f"Texts of at most {_max_ids(prompts)} tokens are tokenised here.", param=field) from None
    decode = prompts.tokenizer.decode

    def written() -> bytes:
        texts = [decode([each]) for each in ids] if ask.return_token_strs else None
        found = {"count": len(ids), "max_model_len": prompts.max_model_len, "tokens": ids, "token_strs": texts}
        return msgspec.json.encode(found)

    return Response(await prompts.run_many(written, len(ids)), media_type="application/json")


@router.post(
    "/detokenize",
    response_model=dict[str, str],
    openapi_extra=body_of_kind(DetokenizeRequest),
    summary="Turn token ids into text",
)
async def detokenize(request: Request) -> Response:
    """Returns the text of token ids. Control tokens have none."""
    _, ask = await read_body(request, DetokenizeRequest, DETOKENIZE)
    offer = _offer(request, ask.model)
    prompts = await offer.prompts(offer.deployment.stable)
    await count_request(request)
    if len(ask.tokens) > (most := _max_ids(prompts)):
        raise InvalidInput(f"At most {most} token ids are taken.", param="tokens")
    tokenizer = prompts.tokenizer

    def written() -> bytes:
        if max(ask.tokens, default=0) >= tokenizer.vocab_size:
            raise InvalidInput(f"Token ids must be below {tokenizer.vocab_size}.", param="tokens")
        return msgspec.json.encode({"prompt": tokenizer.decode(ask.tokens)})

    return Response(await prompts.run_many(written, len(ask.tokens)), media_type="application/json")


def _max_ids(prompts: Prompts) -> int:
    """Returns how many ids a text may have here."""
    return max(prompts.max_model_len, min(_MAX_WINDOWS * prompts.max_model_len, _MAX_IDS))


def _offer(request: Request, model: str | None) -> Offer:
    """Returns the deployment of this name, or the only one that the caller may use."""
    if model is not None:
        return find_model(request, model).offer
    listed = gateway_of(request).offers.listed(identity_of(request).terms.allows)
    if len(listed) != 1:
        raise InvalidInput("'model' is missing.", param="model", code="missing_required_parameter")
    return find_model(request, listed[0].served.name).offer


async def _of_text(prompts: Prompts, ask: TokenizeRequest) -> list[int]:
    long = prompts.within(_max_ids(prompts) + 1)
    return await long.text(ask.prompt or "", add_special=ask.add_special_tokens is not False)


async def _of_chat(offer: Offer, prompts: Prompts, ask: TokenizeRequest) -> list[int]:
    chat = ChatRequest(
        model="", messages=ask.messages or [], tools=ask.tools, chat_template_kwargs=ask.chat_template_kwargs
    )
    plan = plan_of(chat.toolbox, prompts.dialect(offer.served(offer.deployment.stable).call_format))
    long = prompts.within(_max_ids(prompts) + 1).with_options(chat.template_options)
    return await long.chat(chat.texts(), tools=plan.tools, dialect=plan.dialect)

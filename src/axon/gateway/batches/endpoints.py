"""The APIs that may answer the lines of a batch: one table, with the check of a body that each route does itself.

To add an API, add a row: its path, and a function that raises ``InvalidInput`` for a body that its route would refuse
and returns the body's model.
"""

from collections.abc import Callable, Mapping

from axon.errors import InvalidInput
from axon.gateway.directives import CHAT, COMPLETIONS, RESPONSES
from axon.gateway.http.body import parse
from axon.gateway.openai.encoders.embedding_requests import EmbeddingRequest
from axon.gateway.openai.requests import ChatRequest, CompletionRequest
from axon.gateway.responses.items import items_of
from axon.gateway.responses.requests import ResponseRequest
from axon.gateway.vector_directives import EMBEDDINGS

Check = Callable[[bytes], str]
"""Checks a body and returns the name of the model that it asks."""


def _chat(body: bytes) -> str:
    ask = parse(ChatRequest, body, CHAT.refused, CHAT.notes)
    _whole(ask.stream)
    ask.texts()
    _ = ask.toolbox, ask.form, ask.tier
    return ask.model


def _completion(body: bytes) -> str:
    ask = parse(CompletionRequest, body, COMPLETIONS.refused, COMPLETIONS.notes)
    _whole(ask.stream)
    ask.check()
    ask.prompts()
    _ = ask.form, ask.tier
    return ask.model


def _response(body: bytes) -> str:
    ask = parse(ResponseRequest, body, RESPONSES.refused, RESPONSES.notes)
    _whole(ask.stream)
    if ask.background:
        raise InvalidInput("'background' must be false in a batch.", param="background")
    ask.check()
    items_of(ask.input or [], now=0.0)
    _ = ask.toolbox, ask.form, ask.tier
    return ask.model


def _embedding(body: bytes) -> str:
    ask = parse(EmbeddingRequest, body, EMBEDDINGS.refused, EMBEDDINGS.notes)
    ask.check()
    return ask.model


def _whole(stream: bool | None) -> None:
    if stream:
        raise InvalidInput("'stream' must be false in a batch.", param="stream")


ENDPOINTS: Mapping[str, Check] = {
    "/v1/chat/completions": _chat,
    "/v1/completions": _completion,
    "/v1/responses": _response,
    "/v1/embeddings": _embedding,
}

"""The form in which a gateway writes a turn's answer: one kind for each API. Set at acceptance; workers never read it.

Every kind is a ``msgspec.Struct``, because msgspec knows tagged unions of these alone; the tag is called ``route``.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import asdict, replace


class ChatReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="route", tag="chat"):
    """The answer to POST /v1/chat/completions."""

    model: str = ""
    """The name that the client asked for, repeated to it."""
    include_usage: bool = False
    """Whether a stream ends with the usage."""
    continuous_usage: bool = False
    """Whether every chunk of a stream carries the usage so far."""
    prompt_logprobs: int | None = None
    """Number of likeliest tokens shown in the place of each prompt token; None shows no log probabilities of them."""
    extra: Mapping[str, Any] = {}
    """Fields of a later release, kept as they came."""


class CompletionReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="route", tag="completion"):
    """The answer to POST /v1/completions."""

    model: str = ""
    include_usage: bool = False
    continuous_usage: bool = False
    echo: tuple[str, ...] = ()
    """The text of each prompt, which its answers begin with; empty unless the client asked for it."""
    prompt_only: bool = False
    """Whether the answer is the echoed prompt alone (``max_tokens: 0``)."""
    best: int = 0
    """Number of each prompt's choices that are returned (``best_of``); 0 for all of them."""
    hides_logprobs: bool = False
    """Whether log probabilities were computed to choose the best by, and are not shown."""
    prompt_logprobs: int | None = None
    """Number of likeliest tokens shown in the place of each prompt token; None shows no log probabilities of them."""
    extra: Mapping[str, Any] = {}

    def echo_of(self, prompt: int) -> str:
        """The echoed text at the start of the answers to one prompt."""
        return self.echo[prompt] if self.echo else ""


class ResponseReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="route", tag="response"):
    """The answer to POST /v1/responses: what the response object repeats of its request."""

    model: str = ""
    instructions: str | None = None
    max_output_tokens: int | None = None
    truncation: str | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    metadata: Mapping[str, str] = {}
    tools: str = ""
    """The tools as the response object lists them, as JSON text; empty for none."""
    tool_choice: str = ""
    """The choice among them, as JSON text; empty for ``auto``."""
    serial_calls: bool = False
    """Whether the request allows one call at most (``parallel_tool_calls: false``)."""
    text: str = ""
    """What was asked of the answer's text, its format and verbosity, as JSON: a schema may have numbers that no wire
    format of ours has."""
    reasoning: Mapping[str, str] = {}
    """What was asked of the reasoning: its effort and summary."""
    extra: Mapping[str, Any] = {}


class MessagesReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="route", tag="messages"):
    """The answer to POST /v1/messages."""

    model: str = ""
    hides_thinking: bool = False
    """Whether blocks of thinking are written without their text (``thinking.display: omitted``)."""
    extra: Mapping[str, Any] = {}


class EmbeddingReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="route", tag="embedding"):
    """The answer to POST /v1/embeddings, or a part of it: a large request becomes several jobs."""

    model: str = ""
    extra: Mapping[str, Any] = {}


class OtherReply(msgspec.Struct, frozen=True, kw_only=True, tag_field="route", tag=""):
    """A reply of a kind that only a later release knows, kept as it came."""

    name: str = ""
    """The route of the reply; empty where the text of an older release's turn was erased."""
    extra: Mapping[str, Any] = {}

    @property
    def model(self) -> str:
        return ""


Reply = ChatReply | CompletionReply | ResponseReply | MessagesReply | EmbeddingReply | OtherReply

_ROUTE = "route"
_KINDS: Mapping[object, type[ChatReply | CompletionReply | ResponseReply | MessagesReply | EmbeddingReply]] = {
    "chat": ChatReply,
    "completion": CompletionReply,
    "response": ResponseReply,
    "messages": MessagesReply,
    "embedding": EmbeddingReply,
}
_FIELDS = {kind: frozenset(kind.__struct_fields__) - {"extra"} for kind in _KINDS.values()}


def from_wire(raw: Mapping[str, Any]) -> Reply:
    """The reply in a decoded map; raises ``msgspec.ValidationError`` where a field has a wrong type."""
    kind = _KINDS.get(raw.get(_ROUTE, ""))
    if kind is None:
        extra = {name: value for name, value in raw.items() if name != _ROUTE}
        return OtherReply(name=str(raw.get(_ROUTE, "")), extra=extra)
    body = {name: value for name, value in raw.items() if name in _FIELDS[kind]}
    if isinstance(echo := body.get("echo"), str):
        body["echo"] = (echo,) if echo else ()
    extra = {name: value for name, value in raw.items() if name not in body and name != _ROUTE}
    return msgspec.convert({**body, _ROUTE: raw[_ROUTE], "extra": extra}, kind)


def to_wire(reply: Reply) -> dict[str, Any]:
    """The reply as a map: its route, and the fields that are not at their default."""
    if isinstance(reply, OtherReply):
        return {_ROUTE: reply.name, **reply.extra} if reply.name else dict(reply.extra)
    given = {name: value for name, value in asdict(reply).items() if name != "extra" and value}
    if isinstance(reply, ChatReply | CompletionReply) and reply.prompt_logprobs is not None:
        given["prompt_logprobs"] = reply.prompt_logprobs  # 0 is not the default
    if len(given.get("echo", ())) == 1:  # the echo of a single prompt is written bare, as release 0.1 reads it
        [given["echo"]] = given["echo"]
    return {**reply.extra, _ROUTE: reply.__struct_config__.tag, **given}


def without_words(reply: Reply) -> Reply:
    """Returns the reply without the client's text."""
    match reply:
        case CompletionReply():
            return replace(reply, echo=(), extra={})
        case ResponseReply():
            return ResponseReply(model=reply.model)
    return replace(reply, extra={})

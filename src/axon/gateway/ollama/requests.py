"""The bodies of Ollama's requests, and the chat or completion that each asks for. Knows no HTTP.

Ollama's fields are other words for those of a chat, so a body becomes a ``ChatRequest``, or a ``CompletionRequest`` for
a raw prompt, which is admitted and answered as if it had come by OpenAI's API.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import Field, ValidationError

from axon.errors import InvalidInput, Unsupported
from axon.gateway.directive import Treatment
from axon.gateway.directives import OLLAMA_OPTIONS
from axon.gateway.http.body import Many, Wire, at_most, field_error
from axon.gateway.openai.encoders.embedding_requests import EmbeddingRequest
from axon.gateway.openai.formats import Schema
from axon.gateway.openai.requests import ChatRequest, CompletionRequest
from axon.gateway.openai.tools import MAX_TOOLS

LATEST = ":latest"
"""Ollama's clients add this tag to a name that has none."""
_MAX_MESSAGES = 10_000
_RENAMED = {"num_predict": "max_tokens", "repeat_penalty": "repetition_penalty"}
"""Options that have another name in OpenAI's API; the others have the same."""
_PENALTIES = frozenset({"repetition_penalty", "presence_penalty", "frequency_penalty"})
_OLLAMAS = {theirs: ours for ours, theirs in _RENAMED.items()} | {"reasoning_effort": "think"}
"""Ollama's names of fields that are wrong."""
R = TypeVar("R", bound=Wire)


class CalledFunction(Wire):
    """The function of a call, with its arguments as an object."""

    name: str
    arguments: Annotated[dict[str, Any], *at_most(1024)] | None = None


class ToolCall(Wire):
    function: CalledFunction


class OllamaMessage(Wire):
    """One message of a chat."""

    role: str
    content: str | None = None
    thinking: str | None = None
    """Earlier reasoning, which prompts do not include."""
    images: Many[str] | None = None
    tool_calls: Annotated[Many[ToolCall], Field(max_length=MAX_TOOLS)] | None = None
    tool_name: str | None = None
    """The name of the tool whose result a message of the role ``tool`` is."""


class OllamaRequest(Wire):
    """The fields that chats and prompts share."""

    model: Annotated[str, Field(min_length=1)]
    """The deployment's name; ``:latest`` behind it is ignored."""
    stream: bool | None = None
    """Streams the answer, one JSON object a line; the default."""
    format: str | Schema | None = None
    """``json``, or a JSON schema that the answer follows."""
    options: Annotated[dict[str, Any], *at_most(64)] | None = None
    """Sampling parameters: fields.md has them all."""
    think: bool | str | None = None
    """Switches the model's thinking on or off where its template has such a switch, or says how much to think."""
    logprobs: bool | None = None
    top_logprobs: int | None = None

    @property
    def streams(self) -> bool:
        return self.stream is not False

    @property
    def name(self) -> str:
        """The deployment's name."""
        return self.model.removesuffix(LATEST)

    def fields(self) -> dict[str, Any]:
        """Returns the request's fields in the words of OpenAI's API."""
        found: dict[str, Any] = {"model": self.name, "stream": self.streams, **_options(self.options or {})}
        if self.format:
            found["response_format"] = _format(self.format)
        if isinstance(self.think, bool):
            found["chat_template_kwargs"] = {"enable_thinking": self.think}
        elif self.think is not None:
            found["reasoning_effort"] = self.think
        return found


class OllamaEmbedRequest(Wire):
    """Body of POST /api/embed."""

    model: Annotated[str, Field(min_length=1)]
    """The deployment's name; ``:latest`` behind it is ignored."""
    input: str | Many[str]
    """A text, or at most 2048 texts."""
    truncate: bool | None = None
    """Cuts texts that are too long for the model, which is the default; with ``false`` they are refused."""
    dimensions: int | None = None
    """Size of the vectors, where the model allows other sizes than its own."""

    def embedding(self) -> EmbeddingRequest:
        """Returns the request of OpenAI's API that asks for the same; raises ``InvalidInput``."""
        cut = None if self.truncate is False else -1
        name = self.model.removesuffix(LATEST)
        fields = {"model": name, "input": self.input, "dimensions": self.dimensions, "truncate_prompt_tokens": cut}
        made = _made(EmbeddingRequest, fields)
        made.check()
        return made


class OllamaChatRequest(OllamaRequest):
    """Body of POST /api/chat."""

    messages: Annotated[Many[OllamaMessage], Field(max_length=_MAX_MESSAGES)] | None = None
    """The conversation so far; without any, the answer says that the model is loaded."""
    tools: Annotated[Many[Annotated[dict[str, Any], *at_most(64)]], Field(max_length=MAX_TOOLS)] | None = None
    """Functions that the model may call."""

    def chat(self) -> ChatRequest:
        """Returns the chat that the request asks for; raises ``InvalidInput`` that names Ollama's field."""
        fields = {**self.fields(), "messages": _messages(self.messages or [])}
        if self.tools:
            fields["tools"] = [{"type": "function", **tool} for tool in self.tools]
        return _made(ChatRequest, {**fields, "logprobs": self.logprobs, "top_logprobs": self.top_logprobs})


class OllamaGenerateRequest(OllamaRequest):
    """Body of POST /api/generate."""

    prompt: str | None = None
    """What the model is asked; without it, the answer says that the model is loaded."""
    system: str | None = None
    """What the model is told before the prompt."""
    raw: bool | None = None
    """Whether the prompt goes to the model as it is, without the model's chat template."""

    def chat(self) -> ChatRequest:
        """Returns the chat whose only message is the prompt."""
        messages = [{"role": "system", "content": self.system}] if self.system else []
        messages.append({"role": "user", "content": self.prompt or ""})
        more = {"logprobs": self.logprobs, "top_logprobs": self.top_logprobs}
        return _made(ChatRequest, {**self.fields(), "messages": messages, **more})

    def completion(self, max_tokens: int) -> CompletionRequest:
        """Returns the completion of the raw prompt; ``max_tokens`` holds if the request sets no length."""
        fields = {"max_tokens": max_tokens, **self.fields(), "prompt": self.prompt or ""}
        if fields.pop("chat_template_kwargs", None) or fields.pop("reasoning_effort", None):
            raise Unsupported("'think' cannot be used with 'raw'.", param="think")
        return _made(CompletionRequest, {**fields, "logprobs": (self.top_logprobs or 0) if self.logprobs else None})


class OllamaShowRequest(Wire):
    """Body of POST /api/show."""

    model: str | None = None
    name: str | None = None
    """Older name of ``model``."""


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the honoured options under OpenAI's names; raises ``Unsupported`` for one that is refused."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        directive = OLLAMA_OPTIONS.fields.get(name)
        if directive is None or directive.treatment is Treatment.HINT or value is None:
            continue
        if directive.treatment is Treatment.HONOURED:
            found[_RENAMED.get(name, name)] = value
        elif value not in directive.neutral:
            note = f": {OLLAMA_OPTIONS.notes[name]}" if name in OLLAMA_OPTIONS.notes else ""
            raise Unsupported(f"'options.{name}' is not supported by this server{note}.", param=f"options.{name}")
    if given.get("repeat_last_n") == 0:
        found = {name: value for name, value in found.items() if name not in _PENALTIES}
    if isinstance(length := found.get("max_tokens"), int) and length < 0:
        del found["max_tokens"]  # as long as the model's context allows
    return found


def _format(given: str | dict[str, Any]) -> dict[str, Any]:
    if isinstance(given, dict):
        return {"type": "json_schema", "json_schema": {"name": "format", "schema": given}}
    if given != "json":
        raise InvalidInput("'format' must be 'json' or a JSON schema.", param="format")
    return {"type": "json_object"}


def _messages(given: list[OllamaMessage]) -> list[dict[str, Any]]:
    """Returns the messages as OpenAI's API has them. Calls get ids, by which their results are told apart."""
    found: list[dict[str, Any]] = []
    open_calls: list[tuple[str, str]] = []
    for index, message in enumerate(given):
        if message.images:
            raise Unsupported("Images are not supported by this server.", param=f"messages.{index}.images")
        body: dict[str, Any] = {"role": message.role, "content": message.content or ""}
        if message.tool_calls:
            calls = [(f"call_{index}_{number}", call) for number, call in enumerate(message.tool_calls)]
            open_calls += [(call_id, call.function.name) for call_id, call in calls]
            body["tool_calls"] = [_call(call_id, call) for call_id, call in calls]
        if message.role == "tool":
            body["tool_call_id"] = _answered(open_calls, message.tool_name)
        found.append(body)
    return found


def _call(call_id: str, call: ToolCall) -> dict[str, Any]:
    arguments = msgspec.json.encode(call.function.arguments or {}).decode()
    return {"id": call_id, "type": "function", "function": {"name": call.function.name, "arguments": arguments}}


def _answered(open_calls: list[tuple[str, str]], name: str | None) -> str:
    """Returns the id of the first call without a result, of this name if one is given; empty if there is none."""
    for place, (call_id, called) in enumerate(open_calls):
        if name in (None, called):
            del open_calls[place]
            return call_id
    return ""


def _made(kind: type[R], fields: dict[str, Any]) -> R:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        problem = field_error(error)
    name = _OLLAMAS.get(problem.param or "", problem.param or "")
    if name in OLLAMA_OPTIONS.fields:
        name = f"options.{name}"
    raise InvalidInput(problem.message.replace(f"'{problem.param}'", f"'{name}'"), code=problem.code, param=name)

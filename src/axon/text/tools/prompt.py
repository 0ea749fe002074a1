"""Puts tools, calls and results into a prompt: as the model's template knows them, or in words of our own.

Messages come in the shape that most templates read: an assistant's ``tool_calls`` with arguments as objects, and
results with the role ``tool``. Knows no API.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from axon.domain.content.tool import Tool
from axon.text.template import Json, Message
from axon.text.tools.formats import CallFormat

_PREAMBLE = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{tools}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""
"""Hermes' words, for a template that does not know tools."""
_NUM_ID_CHARS = 9
"""Mistral's templates refuse ids of calls that have another length."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How tools are described to a model and how it writes calls."""

    format: CallFormat = CallFormat.HERMES
    native: bool = False
    """Whether the model's template knows tools; otherwise they are described in a system message."""


PLAIN = Dialect()
"""The dialect for a template that knows no tools."""


def tool_message(tool: Tool) -> Message:
    """A tool in the shape that templates read."""
    function: dict[str, Json] = {"name": tool.name, "description": tool.description}
    function["parameters"] = json.loads(tool.parameters) if tool.parameters else {"type": "object", "properties": {}}
    return {"type": "function", "function": function}


def call_message(call_id: str, name: str, arguments: str) -> Message:
    """A call in the shape that templates read. Arguments that are no JSON, as of a call that was cut off, stay text,
    and so do those with half of a surrogate pair, which no prompt can have."""
    value: Json = arguments
    try:
        parsed: Json = json.loads(arguments or "{}")
        _to_json(parsed).encode()
        value = parsed
    except (ValueError, RecursionError):
        pass
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": value}}


def prepared(
    messages: Sequence[Message], tools: Sequence[Tool], dialect: Dialect
) -> tuple[Sequence[Message], Sequence[Message] | None]:
    """The messages and the tools for a template of this dialect."""
    shown = [tool_message(tool) for tool in tools] or None
    has_calls = any(each.get("tool_calls") or each["role"] == "tool" for each in messages)
    if not dialect.native:
        plain = [*_plain(messages)] if has_calls else messages
        return (_with_preamble(plain, shown) if shown else plain), None
    if has_calls and dialect.format is CallFormat.MISTRAL:
        return [_with_short_ids(message) for message in messages], shown
    if has_calls and dialect.format in (CallFormat.LLAMA_JSON, CallFormat.HARMONY):
        return [*_one_at_a_time(messages)], shown
    return messages, shown


def num_characters(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> int:
    """The number of characters that messages and tools have at least in a prompt."""
    own = sum(len(tool.name) + len(tool.description) + len(tool.parameters) for tool in tools)
    return own + sum(_num_characters(message) for message in messages)


def _num_characters(message: Message) -> int:
    content, calls = message["content"], message.get("tool_calls")
    num = len(content) if isinstance(content, str) else 0
    return num + (len(_to_json(calls)) if calls else 0)


def _with_preamble(messages: Sequence[Message], tools: Sequence[Message]) -> list[Message]:
    words = _PREAMBLE.format(tools="\n".join(map(_to_json, tools)))
    if messages and messages[0]["role"] == "system":
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{words}"}, *messages[1:]]
    return [{"role": "system", "content": words}, *messages]


def _plain(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages with calls and results as text; results that follow each other become one message."""
    results: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            results.append(f"<tool_response>\n{message['content']}\n</tool_response>")
            continue
        if results:
            yield {"role": "user", "content": "\n".join(results)}
            results = []
        yield _with_calls_as_text(message)
    if results:
        yield {"role": "user", "content": "\n".join(results)}


def _with_calls_as_text(message: Message) -> Message:
    calls = [f"<tool_call>\n{_to_json(_spoken(call))}\n</tool_call>" for call in _calls(message)]
    if not calls:
        return message
    content = message["content"]
    return {
        "role": message["role"],
        "content": "\n".join([content, *calls] if isinstance(content, str) and content else calls),
    }


def _spoken(call: Mapping[str, Json]) -> Json:
    function = call["function"]
    assert isinstance(function, Mapping)
    return {"name": function["name"], "arguments": function["arguments"]}


def _with_short_ids(message: Message) -> Message:
    changed = dict(message)
    if calls := _calls(message):
        changed["tool_calls"] = [{**call, "id": _short_id(call["id"])} for call in calls]
    if "tool_call_id" in message:
        changed["tool_call_id"] = _short_id(message["tool_call_id"])
    return changed


def _short_id(call_id: Json) -> str:
    return hashlib.sha256(str(call_id).encode()).hexdigest()[:_NUM_ID_CHARS]


def _one_at_a_time(messages: Sequence[Message]) -> Iterator[Message]:
    """One message for each call, with its result after it: Llama's templates refuse several calls in one message, and
    those of gpt-oss leave out all but the first."""
    results = {
        str(each["tool_call_id"]): each for each in messages if each["role"] == "tool" and "tool_call_id" in each
    }
    placed: set[str] = set()
    for message in messages:
        calls = _calls(message)
        if message["role"] == "tool" and str(message.get("tool_call_id")) in placed:
            continue
        if len(calls) < 2:
            yield message
            continue
        for index, call in enumerate(calls):
            yield {**message, "content": message["content"] if index == 0 else "", "tool_calls": [call]}
            call_id = str(call["id"])
            if call_id in results:
                placed.add(call_id)
                yield results[call_id]


def _calls(message: Message) -> Sequence[Mapping[str, Json]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list | tuple) else []


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)

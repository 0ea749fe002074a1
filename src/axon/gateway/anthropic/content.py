"""The content blocks of messages that clients send, and the messages for a chat template made from them. Pure.

Text, thinking, tool calls and their results are supported; every other type of block is refused by name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from axon.errors import InvalidInput, Unsupported
from axon.gateway.anthropic.pairs import Pairs
from axon.gateway.http.body import Many, Wire, at_most
from axon.gateway.openai.tools import check_depth
from axon.text.template import Json
from axon.text.template import Message as TemplateMessage

_BETWEEN = "\n\n"
"""Separates blocks of text within a message, and messages of one role that follow each other."""
_FAILED = "Error: "
"""Comes before the result of a tool that failed (``is_error``), because templates know no such flag."""
_MAX_NAME_CHARS = 64


class TextBlock(Wire):
    """A block of text."""

    type: Literal["text"]
    text: str


class ResultBlock(Wire):
    """A block of a tool's result; only text is supported."""

    type: str
    text: str | None = None


class Block(Wire):
    """A content block of a message. ``cache_control`` is a hint: every prompt is cached by its prefix."""

    type: str
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Annotated[dict[str, Any], *at_most(1024)] | None = None
    tool_use_id: str | None = None
    content: str | Many[ResultBlock] | None = None
    is_error: bool | None = None


class InputMessage(Wire):
    """One message of a conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | Many[Block]


@dataclass(slots=True)
class _Said:
    """What one role says in one go."""

    role: str
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Json] = field(default_factory=list)
    result_of: tuple[str, str] | None = None
    """The id and the name of the tool call whose result this is."""

    def message(self) -> TemplateMessage:
        """The same in the shape that templates read."""
        found: dict[str, Json] = {"role": self.role, "content": _BETWEEN.join(self.texts)}
        if self.thoughts:
            found["reasoning_content"] = "\n".join(self.thoughts)
        if self.calls:
            found["tool_calls"] = self.calls
        if self.result_of is not None:
            found["tool_call_id"], found["name"] = self.result_of
        return found


def messages_of(system: str | Sequence[TextBlock] | None, given: Sequence[InputMessage]) -> list[TemplateMessage]:
    """Returns the messages for the model's chat template. Messages of one role in a row become one message.

    Raises ``InvalidInput`` for a tool call without its result, a result without its call, and text before results.
    """
    found: list[_Said] = []
    if said := system if isinstance(system, str) or system is None else _BETWEEN.join(each.text for each in system):
        found.append(_Said("system", [said]))
    pairs = Pairs()
    for index, message in enumerate(given):
        path = f"messages.{index}"
        pairs.enter(message.role)
        parts = [*_parts_of(message, index, pairs)]
        if not parts and message.role != "assistant":  # an answer may have been empty, and comes back as it was
            raise InvalidInput(f"{path}: content must be non-empty.", param=f"{path}.content")
        for number, part in enumerate(parts):
            _add(found, part, is_apart=number == 0 and message.role == "system")
    pairs.end()
    return [said.message() for said in found]


def _add(found: list[_Said], part: _Said, *, is_apart: bool) -> None:
    """Adds a part to what the same role said just before. Results of tools and system messages stay apart."""
    last = found[-1] if found else None
    if last is None or last.role != part.role or part.result_of is not None or is_apart:
        found.append(part)
        return
    last.texts += part.texts
    last.thoughts += part.thoughts
    last.calls += part.calls


def _parts_of(message: InputMessage, index: int, pairs: Pairs) -> Iterator[_Said]:
    """Yields what the message of this index says, block by block. ``pairs`` has the tool calls so far."""
    if isinstance(message.content, str):
        pairs.text(message.role)
        yield _Said(message.role, [message.content])
        return
    for number, block in enumerate(message.content):
        yield _part_of(block, message.role, index, f"messages.{index}.content.{number}", pairs)


def _part_of(block: Block, role: str, index: int, path: str, pairs: Pairs) -> _Said:
    match block.type, role:
        case "text", _:
            pairs.text(role)
            return _Said(role, [_needed(block.text, f"{path}.text")])
        case "thinking", "assistant":
            return _Said(role, thoughts=[_needed(block.thinking, f"{path}.thinking")])
        case "redacted_thinking", "assistant":
            return _Said(role)
        case "tool_use", "assistant":
            call_id, name = _needed(block.id, f"{path}.id"), _needed(block.name, f"{path}.name")
            pairs.call(call_id, name, index, path)
            check_depth(block.input, f"{path}.input")
            function: dict[str, Json] = {"name": name, "arguments": block.input or {}}
            return _Said(role, calls=[{"id": call_id, "type": "function", "function": function}])
        case "tool_result", "user":
            return _result(block, path, pairs)
        case "thinking" | "redacted_thinking" | "tool_use" | "tool_result", _:
            raise InvalidInput(f"{path}: `{block.type}` blocks cannot be in {role} messages", param=path)
    kind = block.type[:_MAX_NAME_CHARS]
    raise Unsupported(f"{path}: blocks of type '{kind}' are not supported by this server.", param=path)


def _result(block: Block, path: str, pairs: Pairs) -> _Said:
    call_id = _needed(block.tool_use_id, f"{path}.tool_use_id")
    name = pairs.result(call_id, path)
    text = _result_text(block.content, f"{path}.content")
    return _Said("tool", [_FAILED + text if block.is_error else text], result_of=(call_id, name))


def _result_text(content: str | Sequence[ResultBlock] | None, path: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for index, block in enumerate(content):
        if block.type != "text":
            kind = block.type[:_MAX_NAME_CHARS]
            raise Unsupported(
                f"{path}.{index}: blocks of type '{kind}' are not supported by this server.", param=f"{path}.{index}"
            )
    return _BETWEEN.join(_needed(block.text, f"{path}.{index}.text") for index, block in enumerate(content))


def _needed(value: str | None, path: str) -> str:
    if value is None:
        raise InvalidInput(f"{path}: Field required", param=path, code="missing_required_parameter")
    return value

"""The content blocks of messages that clients send, and the messages for a chat template made from them. Pure.

Text, thinking, tool calls and their results are supported; every other type of block is refused by name.
"""

from collections.abc import Sequence
from typing import Literal

from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import Many, Wire

_BETWEEN = "\n\n"
"""Separates blocks of text within a message, and messages of one role that follow each other."""


class TextBlock(Wire):
    """A block of text."""

    type: Literal["text"]
    text: str


class Block(Wire):
    """A content block of a message. ``cache_control`` is a hint: every prompt is cached by its prefix."""

    type: str
    text: str | None = None
    thinking: str | None = None


class InputMessage(Wire):
    """One message of a conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | Many[Block]


def messages_of(system: str | Sequence[TextBlock] | None, given: Sequence[InputMessage]) -> list[dict[str, str]]:
    """Returns the messages for the model's chat template. Messages of one role in a row become one message."""
    found: list[dict[str, str]] = []
    if said := system if isinstance(system, str) or system is None else _BETWEEN.join(each.text for each in system):
        found.append({"role": "system", "content": said})
    for index, message in enumerate(given):
        _add(found, message.role, _text_of(message, f"messages.{index}"))
    return found


def _add(found: list[dict[str, str]], role: str, text: str) -> None:
    """Adds a message, to the last one if that has the same role; the system's stay apart."""
    if found and role != "system" and found[-1]["role"] == role:
        found[-1]["content"] += _BETWEEN + text
    else:
        found.append({"role": role, "content": text})


def _text_of(message: InputMessage, path: str) -> str:
    if isinstance(message.content, str):
        return message.content
    blocks = [_block_text(block, f"{path}.content.{index}") for index, block in enumerate(message.content)]
    return _BETWEEN.join(text for text in blocks if text)


def _block_text(block: Block, path: str) -> str:
    """Returns the text of a block that goes into the prompt; thinking of earlier answers does not."""
    if block.type in ("thinking", "redacted_thinking"):
        return ""
    if block.type != "text":
        raise Unsupported(f"{path}: blocks of type '{block.type}' are not supported by this server.", param=path)
    if block.text is None:
        raise _missing(f"{path}.text")
    return block.text


def _missing(path: str) -> InvalidInput:
    return InvalidInput(f"{path}: Field required", param=path, code="missing_required_parameter")

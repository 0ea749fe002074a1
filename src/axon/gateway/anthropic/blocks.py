"""The content blocks of an answer: thinking, text and tool calls, gathered from its tokens. No I/O, no clock.

    tokens   hmm   so    The   ans   wer   get_  weather {"ci  ty":1}
    blocks   └ thinking ┘ └──── text ────┘ └────── tool_use ───────┘

Blocks depend on the tokens alone. White space between two blocks belongs to neither: Anthropic's API knows no block of
white space alone.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from pydantic_core import from_json

from axon.domain.content.tool_call import TOOL_CALLS, call_id
from axon.domain.log.chunk import Chunk, Token

INVALID_JSON = "INVALID_JSON"
"""The key of arguments that are no JSON object, the one that Anthropic's documentation advises clients to use."""


class Kind(Enum):
    """The type of a block."""

    THINKING = auto()
    TEXT = auto()
    TOOL_USE = auto()


@dataclass(slots=True, eq=False)
class Block:
    """One block, as far as it has come."""

    kind: Kind
    index: int
    """Its index in the content."""
    call: int = 0
    """The number of the tool call, from 0 on."""
    name: str = ""
    """The called tool."""
    texts: list[str] = field(default_factory=list)
    """The pieces of its text, which is JSON in a tool call."""

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def signature(self) -> str:
        """A digest of the thinking. Clients want a block of thinking to have one; this server never checks it."""
        return base64.b64encode(hashlib.sha256(self.text.encode()).digest()).decode()


class Verb(Enum):
    """What becomes of a block."""

    START = auto()
    DELTA = auto()
    STOP = auto()


class Step(NamedTuple):
    """One change of the content: a block begins, grows by ``text`` or ends."""

    verb: Verb
    block: Block
    text: str = ""


class Blocks:
    """Gathers the tokens of one answer, one after the other."""

    def __init__(self) -> None:
        self.found: list[Block] = []
        self._open: Block | None = None
        self._held = ""
        """White space that is a part of a block only if text follows it."""

    def add(self, token: Token) -> Iterator[Step]:
        """Adds a token and yields what that changes."""
        if token.reasoning:
            yield from self._grow(Kind.THINKING, token.reasoning)
        if token.text:
            yield from self._say(token.text)
        for piece in token.details.calls if token.details is not None else ():
            yield from self._grow(Kind.TOOL_USE, piece.arguments, call=piece.index, name=piece.name)

    def end(self) -> Iterator[Step]:
        """Ends the content: the open block ends. An answer of white space alone is one block of it."""
        if self._held and not self.found:
            yield from self._grow(Kind.TEXT, self._held)
        yield from self._close()

    def _say(self, text: str) -> Iterator[Step]:
        if self._open is None or self._open.kind is not Kind.TEXT:
            text = self._held + text
            self._held = text if text.isspace() else ""
            if self._held:
                return
        yield from self._grow(Kind.TEXT, text)

    def _grow(self, kind: Kind, text: str, *, call: int = 0, name: str = "") -> Iterator[Step]:
        """Adds text to the open block, or to a new one if the open one is another."""
        block = self._open
        if block is None or (block.kind, block.call) != (kind, call):
            yield from self._close()
            self._held = ""
            block = self._open = Block(kind, len(self.found), call, name)
            self.found.append(block)
            yield Step(Verb.START, block)
        if text:
            block.texts.append(text)
            yield Step(Verb.DELTA, block, text)

    def _close(self) -> Iterator[Step]:
        if self._open is not None:
            yield Step(Verb.STOP, self._open)
            self._open = None


def content_of(tokens: Sequence[Token]) -> list[Block]:
    """Returns the blocks of a whole answer."""
    blocks = Blocks()
    for token in tokens:
        for _ in blocks.add(token):
            pass
    for _ in blocks.end():
        pass
    return blocks.found


def block_body(block: Block, turn_id: str, *, hides_thinking: bool = False, is_cut_off: bool = False) -> dict[str, Any]:
    """Returns the JSON of a block of a whole answer; ``is_cut_off``: the answer ended within the block."""
    head = head_body(block, turn_id)
    match block.kind:
        case Kind.THINKING:
            return {**head, "thinking": "" if hides_thinking else block.text, "signature": block.signature}
        case Kind.TEXT:
            return {**head, "text": block.text}
        case Kind.TOOL_USE:
            return {**head, "input": input_of(block.text, is_cut_off=is_cut_off)}


def head_body(block: Block, turn_id: str) -> dict[str, Any]:
    """Returns the JSON of a block that has just begun."""
    match block.kind:
        case Kind.THINKING:
            return {"type": "thinking", "thinking": "", "signature": ""}
        case Kind.TEXT:
            return {"type": "text", "text": ""}
        case Kind.TOOL_USE:
            return {"type": "tool_use", "id": tool_use_id(turn_id, block.call), "name": block.name, "input": {}}


def tool_use_id(turn_id: str, call: int) -> str:
    """Returns the id of a tool call, by which its result names it."""
    return f"toolu_{call_id(turn_id, 0, call).partition('_')[2]}"


def input_of(arguments: str, *, is_cut_off: bool = False) -> dict[str, Any]:
    """Returns a tool's input, which must be an object: arguments that are none are returned as the text they are.

    Arguments that were cut off are read as far as they go, as Anthropic's own clients read an unfinished stream.
    """
    if not arguments.strip():
        return {}
    try:
        found = from_json(arguments, allow_inf_nan=False, allow_partial=is_cut_off)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {INVALID_JSON: arguments}


def stop_of(chunks: Sequence[Chunk]) -> tuple[str, str | None]:
    """Returns the stop reason of a complete answer, and the stop sequence that it ended with."""
    reason = next((end.reason for chunk in reversed(chunks) for end in chunk.ends), "stop")
    last = next((chunk.tokens[-1] for chunk in reversed(chunks) if chunk.tokens), None)
    return stop_reason(reason, last)


def stop_reason(reason: str, last: Token | None) -> tuple[str, str | None]:
    """Returns the stop reason and the stop sequence of a choice, by the reason of its end and its last token."""
    match reason:
        case "length":
            return "max_tokens", None
        case "content_filter":
            return "refusal", None
        case _ if reason == TOOL_CALLS:
            return "tool_use", None
    matched = last.details.stop if last is not None and last.details is not None else ""
    return ("stop_sequence", matched) if matched else ("end_turn", None)

"""The text of a turn as attributes of its span, for those who ask for it (``traces.content``). Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from axon.domain.content.item import Item
from axon.domain.tracing.span import Attribute
from axon.domain.turn import Turn

_MAX_CHARS = 16_384
"""Characters of text in one attribute; of longer ones the last messages are kept, each cut at its end."""


@dataclass(frozen=True, slots=True)
class _Message:
    """One message of a conversation."""

    role: str
    text: str
    finish_reason: str | None = None
    """None for a message that the model did not write."""


def content_of(turn: Turn) -> dict[str, Attribute]:
    """The turn's messages in the form of OpenTelemetry's GenAI conventions; nothing of a turn whose text is kept
    nowhere (``store: false``). Input is known only where it is stored with the turn."""
    if turn.job.forget or turn.job.purged:
        return {}
    found: dict[str, Attribute] = {"gen_ai.output.messages": _json(_outputs(turn))}
    if turn.job.items:
        found["gen_ai.input.messages"] = _json([_input(item) for item in turn.job.items])
    return found


def _outputs(turn: Turn) -> list[_Message]:
    texts: dict[int, list[str]] = {}
    for token in turn.tokens:
        texts.setdefault(token.choice, []).append(token.text)
    reasons = {end.choice: end.reason for end in turn.ends}
    return [_Message("assistant", "".join(pieces), reasons.get(choice, "")) for choice, pieces in sorted(texts.items())]


def _input(item: Item) -> _Message:
    return _Message(item.role, item.text)


def _json(messages: Sequence[_Message]) -> str:
    """The messages as JSON that is whole even where text is left out: backends parse it."""
    written: list[dict[str, object]] = []
    left = _MAX_CHARS
    for each in reversed(messages):
        if left <= 0:
            break
        reason = {} if each.finish_reason is None else {"finish_reason": each.finish_reason}
        written.append({"role": each.role, "parts": [{"type": "text", "content": each.text[:left]}], **reason})
        left -= max(1, len(each.text))
    return json.dumps(written[::-1], ensure_ascii=False)

"""A stored chat's messages as items of its job, and back as OpenAI's API lists them. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from axon.domain.content.item import Item
from axon.gateway.openai.requests import Message

_CALL = "function_call"


def items_of_chat(turn_id: str, given: Sequence[Message]) -> Iterator[Item]:
    """Yields what is stored of a chat's messages: one item each, and one for each call of a message behind it."""
    for index, message in enumerate(given):
        content = message.content
        parts = (content,) if isinstance(content, str) else tuple(part.text for part in content or ())
        yield Item(
            id=f"{turn_id}-{index}",
            role=message.role,
            texts=parts,
            call_id=message.tool_call_id or "",
            name=message.name or "",
        )
        for call in message.tool_calls or ():
            if call.function is not None:
                texts, name = (call.function.arguments,), call.function.name
                yield Item(type=_CALL, id=call.id, role="assistant", texts=texts, call_id=call.id, name=name)


def message_bodies(items: Sequence[Item]) -> Iterator[dict[str, Any]]:
    """Yields the messages as OpenAI's API lists them."""
    body: dict[str, Any] | None = None
    for item in items:
        if item.type == _CALL and body is not None:
            function = {"name": item.name, "arguments": item.text}
            body.setdefault("tool_calls", []).append({"id": item.call_id, "type": "function", "function": function})
            continue
        if body is not None:
            yield body
        parts = [{"type": "text", "text": text} for text in item.texts] if len(item.texts) > 1 else None
        content = item.text if item.texts else None
        body = {"id": item.id, "role": item.role, "content": content, "content_parts": parts}
        body |= {"name": item.name} if item.name else {}
        body |= {"tool_call_id": item.call_id} if item.call_id else {}
    if body is not None:
        yield body

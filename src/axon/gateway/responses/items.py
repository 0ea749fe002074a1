"""The JSON of conversation items: parses those that clients send, and encodes ours. Knows no route.

Only messages of text are supported; any other type of item or content is refused by name.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from axon.domain.ids import new_id
from axon.domain.item import Item
from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import Many, Wire
from axon.gateway.http.paging import Look

MAX_ITEMS = 1_000
"""A request may have at most this many items."""
_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})


class Part(Wire):
    """A part of a message's content."""

    type: str
    text: str | None = None


class InputItem(Wire):
    """An item of a request: a message, or an output item of an earlier response."""

    type: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | Many[Part] | None = None
    status: str | None = None


Input = str | Annotated[Many[InputItem], Field(max_length=MAX_ITEMS)]


def items_of(given: str | Sequence[InputItem], *, now: float, param: str = "input") -> tuple[Item, ...]:
    """Returns the items of an input with new ids. ``param`` is the name of the request's field that holds them."""
    if isinstance(given, str):
        return (Item(id=new_id("msg_", now), role="user", texts=(given,)),)
    return tuple(
        _item(each, new_id("msg_", now), f"{param}.{index}")
        for index, each in enumerate(given)
        if each.type != "reasoning"  # models are not given the reasoning of earlier responses
    )


def messages_of(instructions: str | None, items: Sequence[Item]) -> list[dict[str, str]]:
    """Returns the messages for the model's chat template, the same as for a chat of these messages."""
    messages = [{"role": _ROLES.get(item.role, item.role), "content": item.text} for item in items]
    return [{"role": "system", "content": instructions}, *messages] if instructions else messages


def item_body(item: Item) -> dict[str, Any]:
    """Returns the JSON of an item."""
    return {
        "id": item.id,
        "type": item.type,
        "status": item.status,
        "role": item.role,
        "content": [part_body(item.role, text) for text in item.texts],
    }


def part_body(role: str, text: str) -> dict[str, Any]:
    """Returns the JSON of a content part in a message of this role."""
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}


ITEM: Look[Item] = Look(lambda item: item.id, item_body)
"""The form of items in a list."""
_ROLES = {"developer": "system"}
"""Roles that chat templates do not know, with those that replace them."""


def _item(given: InputItem, item_id: str, path: str) -> Item:
    """Returns a client's item under our id; ``path`` names it in errors, as in ``input.0``."""
    if given.type not in (None, "message"):
        raise Unsupported(f"Items of type '{given.type}' are not supported by this server yet.", param=path)
    if given.role is None:
        raise InvalidInput(f"'{path}.role' is missing.", param=f"{path}.role", code="missing_required_parameter")
    if given.content is None:
        raise InvalidInput(f"'{path}.content' must be text.", param=f"{path}.content", code="invalid_type")
    status = "incomplete" if given.status == "incomplete" else "completed"
    return Item(id=item_id, role=given.role, texts=_texts(given.content, f"{path}.content"), status=status)


def _texts(content: str | list[Part], path: str) -> tuple[str, ...]:
    """Returns the texts of a message's content; raises if a part is no text."""
    if isinstance(content, str):
        return (content,)
    for part in content:
        if part.type not in _TEXT_PARTS:
            raise Unsupported(f"Content of type '{part.type}' is not supported by this server yet.", param=path)
        if part.text is None:
            raise InvalidInput(f"A part of '{path}' has no text.", param=path, code="missing_required_parameter")
    return tuple(part.text or "" for part in content)

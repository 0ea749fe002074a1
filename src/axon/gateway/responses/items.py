"""Items on OpenAI's wire: what clients send as input, and how items are shown to them. Nothing below knows them.

Only messages of text are taken; every other kind of item or content is refused by its name.
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
_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})


class Part(Wire):
    """A piece of a message's content."""

    type: str
    text: str | None = None


class InputItem(Wire):
    """A message, or an item that an earlier response gave out."""

    type: str | None = None
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | Many[Part] | None = None
    status: str | None = None


Input = str | Annotated[Many[InputItem], Field(max_length=MAX_ITEMS)]


def items_of(given: str | Sequence[InputItem], *, now: float, param: str = "input") -> tuple[Item, ...]:
    """The items in an input, under ids of our own."""
    if isinstance(given, str):
        return (Item(id=new_id("msg_", now), role="user", texts=(given,)),)
    return tuple(
        _item(each, new_id("msg_", now), f"{param}.{index}")
        for index, each in enumerate(given)
        if each.type != "reasoning"  # an earlier response's thinking: the model is not told it again
    )


def messages_of(instructions: str | None, items: Sequence[Item]) -> list[dict[str, str]]:
    """What the model's template is given: the same as a chat of these messages would be."""
    said = [{"role": _ROLES.get(item.role, item.role), "content": item.text} for item in items]
    return [{"role": "system", "content": instructions}, *said] if instructions else said


def item_body(item: Item) -> dict[str, Any]:
    """The item as a client reads it."""
    return {
        "id": item.id,
        "type": item.type,
        "status": item.status,
        "role": item.role,
        "content": [part_body(item.role, text) for text in item.texts],
    }


def part_body(role: str, text: str) -> dict[str, Any]:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "input_text", "text": text}


ITEM: Look[Item] = Look(lambda item: item.id, item_body)
"""How items are listed."""
_ROLES = {"developer": "system"}


def _item(given: InputItem, item_id: str, place: str) -> Item:
    if given.type not in (None, "message"):
        raise Unsupported(f"Items of type '{given.type}' are not supported by this server yet.", param=place)
    if given.role is None:
        raise InvalidInput(f"'{place}.role' is missing.", param=f"{place}.role", code="missing_required_parameter")
    if given.content is None:
        raise InvalidInput(f"'{place}.content' must be text.", param=f"{place}.content", code="invalid_type")
    status = "incomplete" if given.status == "incomplete" else "completed"
    return Item(id=item_id, role=given.role, texts=_texts(given.content, f"{place}.content"), status=status)


def _texts(content: str | list[Part], place: str) -> tuple[str, ...]:
    if isinstance(content, str):
        return (content,)
    for part in content:
        if part.type not in _TEXT_PARTS:
            raise Unsupported(f"Content of type '{part.type}' is not supported by this server yet.", param=place)
        if part.text is None:
            raise InvalidInput(f"A part of '{place}' has no text.", param=place, code="missing_required_parameter")
    return tuple(part.text or "" for part in content)

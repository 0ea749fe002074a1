"""Lists with cursors, as OpenAI's clients page through them. Pure."""

from collections.abc import Sequence
from typing import Any

from axon.domain.item import Item
from axon.errors import InvalidInput
from axon.gateway.items import item_body

DEFAULT_LIMIT = "20"
_MAX_LIMIT = 100


def page(items: Sequence[Item], *, after: str, limit: str, order: str) -> dict[str, Any]:
    """The part of a list that a query's words ask for."""
    num = _limit(limit)
    if order not in ("asc", "desc"):
        raise InvalidInput("'order' must be 'asc' or 'desc'.", param="order")
    ordered = list(items) if order == "asc" else list(reversed(items))
    start = _start(ordered, after)
    return listed(ordered[start : start + num], has_more=start + num < len(ordered))


def listed(items: Sequence[Item], *, has_more: bool = False) -> dict[str, Any]:
    """Items as a list object."""
    return {
        "object": "list",
        "data": [item_body(item) for item in items],
        "first_id": items[0].id if items else None,
        "last_id": items[-1].id if items else None,
        "has_more": has_more,
    }


def _start(items: Sequence[Item], after: str) -> int:
    if not after:
        return 0
    for index, item in enumerate(items):
        if item.id == after:
            return index + 1
    raise InvalidInput(f"No item with id '{after}' in this list.", param="after")


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= _MAX_LIMIT):
        raise InvalidInput(f"'limit' must be a whole number from 1 to {_MAX_LIMIT}.", param="limit")
    return int(text)

"""Lists with cursors, as OpenAI's clients page through them. Pure functions of the list and the query."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from axon.errors import InvalidInput

T = TypeVar("T")
DEFAULT_LIMIT = "20"
_MAX_LIMIT = 100


@dataclass(frozen=True, slots=True)
class Look(Generic[T]):
    """How things of a kind are shown in a list, and found again."""

    id: Callable[[T], str]
    body: Callable[[T], dict[str, Any]]


def page_of(things: Sequence[T], look: Look[T], *, after: str, limit: str, order: str) -> dict[str, Any]:
    """The part of a list that a query's words ask for; ``things`` must come in ascending order."""
    num = _limit(limit)
    if order not in ("asc", "desc"):
        raise InvalidInput("'order' must be 'asc' or 'desc'.", param="order")
    ordered = list(things) if order == "asc" else list(reversed(things))
    start = _start(ordered, look, after)
    return listed(ordered[start : start + num], look, has_more=start + num < len(ordered))


def listed(things: Sequence[T], look: Look[T], *, has_more: bool = False) -> dict[str, Any]:
    """Things as a list object."""
    return {
        "object": "list",
        "data": [look.body(thing) for thing in things],
        "first_id": look.id(things[0]) if things else None,
        "last_id": look.id(things[-1]) if things else None,
        "has_more": has_more,
    }


def _start(things: Sequence[T], look: Look[T], after: str) -> int:
    if not after:
        return 0
    for index, thing in enumerate(things):
        if look.id(thing) == after:
            return index + 1
    raise InvalidInput(f"No item with id '{after}' in this list.", param="after")


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= _MAX_LIMIT):
        raise InvalidInput(f"'limit' must be a whole number from 1 to {_MAX_LIMIT}.", param="limit")
    return int(text)

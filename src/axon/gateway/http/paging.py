"""Cursor pagination as OpenAI's clients use it. Pure functions of the list and the query; knows no kind of thing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from axon.domain.ids import is_made_id
from axon.errors import InvalidInput

T = TypeVar("T")
DEFAULT_LIMIT = "20"
_MAX_LIMIT = 100
_MAX_SHOWN = 100
"""An error repeats at most this many characters of an id."""


@dataclass(frozen=True, slots=True)
class Look(Generic[T]):
    """The form of one kind of thing in a list: the id that a cursor names, and the JSON body."""

    id: Callable[[T], str]
    body: Callable[[T], dict[str, Any]]


def page_of(things: Sequence[T], look: Look[T], *, after: str, limit: str, order: str) -> dict[str, Any]:
    """Returns the page that the query's parameters ask for; ``things`` must be in ascending order."""
    num = limit_of(limit)
    ordered = list(reversed(things)) if is_descending(order) else list(things)
    start = _start(ordered, look, after)
    return listed(ordered[start : start + num], look, has_more=start + num < len(ordered))


def listed(things: Sequence[T], look: Look[T], *, has_more: bool = False) -> dict[str, Any]:
    """Returns the things as OpenAI's list object."""
    return {
        "object": "list",
        "data": [look.body(thing) for thing in things],
        "first_id": look.id(things[0]) if things else None,
        "last_id": look.id(things[-1]) if things else None,
        "has_more": has_more,
    }


def _start(things: Sequence[T], look: Look[T], after: str) -> int:
    """Returns the index after the thing with the id ``after``; 0 if ``after`` is empty."""
    if not after:
        return 0
    for index, thing in enumerate(things):
        if look.id(thing) == after:
            return index + 1
    raise InvalidInput(f"No item with id '{after[:_MAX_SHOWN]}' in this list.", param="after")


def cursor(after: str, prefix: str) -> str:
    """Returns the id that the query names; raises ``InvalidInput`` unless it is empty or has the form of such ids.

    For lists in the order of their ids, in which the place of a thing that is gone is still known: a client may remove
    what it lists.
    """
    if after and not is_made_id(after, prefix):
        raise InvalidInput(f"No item with id '{after[:_MAX_SHOWN]}' in this list.", param="after")
    return after


def is_descending(order: str) -> bool:
    """Returns whether the client wants the last first; raises ``InvalidInput`` unless it is ``asc`` or ``desc``."""
    if order not in ("asc", "desc"):
        raise InvalidInput("'order' must be 'asc' or 'desc'.", param="order")
    return order == "desc"


def limit_of(text: str) -> int:
    """Returns the page size that the client asks for; raises ``InvalidInput`` unless it is from 1 to 100."""
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= _MAX_LIMIT):
        raise InvalidInput(f"'limit' must be a whole number from 1 to {_MAX_LIMIT}.", param="limit")
    return int(text)

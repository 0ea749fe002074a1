"""Fits a history into the model's window: the oldest items go first, and only when the client has allowed it.

What is left begins with a user's item: many templates refuse a conversation that begins with an answer.
"""

from collections.abc import Callable, Sequence

from axon.domain.item import Item
from axon.errors import ContextTooLong
from axon.sessions.prompt import Message, Prompts

_SPARE = 8
"""Of a window that was too full, one part in so many is left to an answer whose length nobody gave."""

Render = Callable[[int], Sequence[Message]]
"""The messages without that many of the oldest items."""


def cuts(items: Sequence[Item]) -> list[int]:
    """How many of the oldest items may go: up to a user's one, or all but the last where there is none."""
    return [number for number in range(1, len(items)) if items[number].role == "user"] or [max(0, len(items) - 1)]


async def fitted(prompts: Prompts, render: Render, *, cuts: Sequence[int], max_tokens: int | None) -> list[int]:
    """The prompt with as many of the items as fit; raises ``ContextTooLong`` when not even the last cut does."""
    room = prompts.max_model_len - (max_tokens or 1)
    if (ids := await _within(prompts, render(0), room)) is not None:
        return ids
    room = prompts.max_model_len - (max_tokens or prompts.max_model_len // _SPARE)
    low, high, best = 0, len(cuts) - 1, None
    while low <= high:  # the fewest that must go, found in a few tries
        middle = (low + high) // 2
        if (ids := await _within(prompts, render(cuts[middle]), room)) is None:
            low = middle + 1
        else:
            best, high = ids, middle - 1
    if best is None:
        return await prompts.chat(render(cuts[-1]))
    return best


async def _within(prompts: Prompts, messages: Sequence[Message], room: int) -> list[int] | None:
    try:
        ids = await prompts.unchecked(messages)
    except ContextTooLong:
        return None
    return ids if len(ids) <= room else None

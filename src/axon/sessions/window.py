"""Truncation: fits a history into the model's context by dropping the oldest items, if the client allows it.

The rest begins with a user item: many templates refuse a conversation that begins with an answer.
"""

from collections.abc import Callable, Sequence

from axon.domain.item import Item
from axon.errors import ContextTooLong
from axon.sessions.prompt import Prompts
from axon.text.template import Message

_SPARE = 8
"""When items are dropped and the request sets no length, 1/8 of the context is left for the answer."""

Render = Callable[[int], Sequence[Message]]
"""Takes a number of oldest items to drop; returns the messages of the rest."""


def cuts(items: Sequence[Item]) -> list[int]:
    """The numbers of oldest items that may be dropped: up to each user item, or all but the last where there is
    none."""
    return [number for number in range(1, len(items)) if items[number].role == "user"] or [max(0, len(items) - 1)]


async def fitted(prompts: Prompts, render: Render, *, cuts: Sequence[int], max_tokens: int | None) -> list[int]:
    """The prompt's token ids with as many items as fit; raises ``ContextTooLong`` when even the last cut is too
    long."""
    room = prompts.max_model_len - (max_tokens or 1)
    if (ids := await _within(prompts, render(0), room)) is not None:
        return ids
    room = prompts.max_model_len - (max_tokens or prompts.max_model_len // _SPARE)
    low, high, best = 0, len(cuts) - 1, None
    while low <= high:  # binary search for the smallest cut that fits
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

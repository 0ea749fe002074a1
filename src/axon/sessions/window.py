"""Fits a history into the model's window: the oldest items go first, and only when the client has allowed it."""

from collections.abc import Callable, Sequence

from axon.errors import ContextTooLong
from axon.sessions.prompt import Message, Prompts

_SPARE = 8
"""Of a window that was too full, one part in so many is left to an answer whose length nobody gave."""

Render = Callable[[int], Sequence[Message]]
"""The messages without that many of the oldest items."""


async def fitted(prompts: Prompts, render: Render, *, droppable: int, max_tokens: int | None) -> list[int]:
    """The prompt with as many of the items as fit; raises ``ContextTooLong`` when not even the last one does."""
    room = prompts.max_model_len - (max_tokens or 1)
    if (ids := await _within(prompts, render(0), room)) is not None:
        return ids
    room = prompts.max_model_len - (max_tokens or prompts.max_model_len // _SPARE)
    low, high, best = 1, droppable, None
    while low <= high:  # the fewest that must go, found in a few tries
        middle = (low + high) // 2
        if (ids := await _within(prompts, render(middle), room)) is None:
            low = middle + 1
        else:
            best, high = ids, middle - 1
    if best is None:
        return await prompts.chat(render(droppable), what="input")
    return best


async def _within(prompts: Prompts, messages: Sequence[Message], room: int) -> list[int] | None:
    try:
        ids = await prompts.unchecked(messages, what="input")
    except ContextTooLong:
        return None
    return ids if len(ids) <= room else None

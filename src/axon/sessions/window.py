"""Truncation: fits a history into the model's context by dropping the oldest items, if the client allows it.

The rest begins with a user item: many templates refuse a conversation that begins with an answer.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from axon.domain.content.item import Item
from axon.errors import ContextTooLong
from axon.sessions.prompt import Prompts
from axon.text.template import Message
from axon.text.tools.plan import NO_CALLS, CallPlan

_SPARE = 8
"""When items are dropped and the request sets no length, 1/8 of the context is left for the answer."""


class Cut(NamedTuple):
    """A choice of items to keep: those from ``start`` on, and before them the one at ``kept``."""

    start: int = 0
    kept: int | None = None

    def of(self, items: Sequence[Item]) -> Sequence[Item]:
        """The items that are left."""
        return items[self.start :] if self.kept is None else (items[self.kept], *items[self.start :])


Render = Callable[[Cut], Sequence[Message]]
"""Returns the messages of the items that a cut leaves."""


def cuts(items: Sequence[Item]) -> list[Cut]:
    """The cuts that may be made, the longest rest first.

    The oldest turns go first, up to each user item. If the last turn alone is too long, as of an agent that has called
    tools many times, its oldest steps go, but neither the user's item, which has the task, nor a call without its
    result.
    """
    users = [number for number, item in enumerate(items) if item.role == "user"]
    task = users[-1] if users else None
    first = 2 + task if task is not None else 1
    steps = [Cut(start, task) for start in _clean_starts(items, first)]
    return [Cut(number) for number in users if number] + steps or [Cut()]


def _clean_starts(items: Sequence[Item], first: int) -> list[int]:
    """The numbers from ``first`` on at which the items can be cut without parting a call from its result."""
    starts: list[int] = []
    open_calls: set[str] = set()
    for start in range(len(items) - 1, first - 1, -1):
        item = items[start]
        if item.type == "function_call_output":
            open_calls.add(item.call_id)
            continue
        if item.type == "function_call":
            open_calls.discard(item.call_id)
        if not open_calls:
            starts.append(start)
    return starts[::-1]


async def fitted(
    prompts: Prompts, render: Render, *, cuts: Sequence[Cut], max_tokens: int | None, plan: CallPlan = NO_CALLS
) -> list[int]:
    """The prompt's token ids with as many items as fit; raises ``ContextTooLong`` when even the last cut is too
    long. ``plan`` has the request's tools."""
    room = prompts.max_model_len - (max_tokens or 1)
    if (ids := await _within(prompts, render(Cut()), room, plan)) is not None:
        return ids
    room = prompts.max_model_len - (max_tokens or prompts.max_model_len // _SPARE)
    low, high, best = 0, len(cuts) - 1, None
    while low <= high:  # binary search for the smallest cut that fits
        middle = (low + high) // 2
        if (ids := await _within(prompts, render(cuts[middle]), room, plan)) is None:
            low = middle + 1
        else:
            best, high = ids, middle - 1
    if best is None:
        return await prompts.chat(render(cuts[-1]), tools=plan.tools, dialect=plan.dialect)
    return best


async def _within(prompts: Prompts, messages: Sequence[Message], room: int, plan: CallPlan) -> list[int] | None:
    try:
        ids = await prompts.unchecked(messages, tools=plan.tools, dialect=plan.dialect)
    except ContextTooLong:
        return None
    return ids if len(ids) <= room else None

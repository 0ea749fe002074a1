"""A session's history, computed from its turns by pure functions: the record of a turn is the source of its items.

A session is a conversation, which has a name of its own and items that were added by hand, or a chain of turns of which
each names the one it continues. A turn that did not complete adds nothing, so asking again does not repeat the
question.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from axon.domain.answer import Part, parts_of
from axon.domain.content.item import Item
from axon.domain.content.tool_call import CallPiece, call_id
from axon.domain.turn import Turn, TurnState

PREFIX = "conv_"
"""Prefix of a conversation's id."""
TITLE = "title"
"""The key of the metadata by which a conversation is called in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A named, stored session of a tenant."""

    id: str
    tenant: str
    created_at: float
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One step of a session: a turn, or items that were added by hand. Steps are ordered by ordinal, then by time."""

    ordinal: int
    at: float
    id: str
    items: tuple[Item, ...]
    """Items of the step; empty for a turn that did not complete."""
    previous: str = ""
    """Id of the turn that this turn continues, where it names one."""
    running: bool = False
    """Whether the step is a turn that has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The items before a turn."""

    session: str
    ordinal: int = 0
    """Ordinal of the last step."""
    items: tuple[Item, ...] = ()


def is_conversation(session: str) -> bool:
    return session.startswith(PREFIX)


def is_titled(conversation: Conversation, part: str) -> bool:
    """Whether the title in its metadata contains this text, whatever its case; any conversation contains nothing."""
    return part.casefold() in conversation.metadata.get(TITLE, "").casefold()


def answer_id(turn_id: str, number: int = 0) -> str:
    """Item id of a turn's answer; an answer that goes on after calls has a second text, with its number in its id."""
    return f"msg_{turn_id.partition('_')[2]}" + (f"_{number}" if number else "")


def call_item_id(turn_id: str, index: int) -> str:
    """Item id of a turn's tool call."""
    return f"fc_{turn_id.partition('_')[2]}_{index}"


def is_of_turn(item: Item, turn_id: str) -> bool:
    """Whether the item is a part of the turn's answer."""
    return item.id.split("_")[1:2] == [turn_id.partition("_")[2]]


def answer_status(turn: Turn) -> str:
    """``completed``, or ``incomplete`` if the turn was cut off."""
    whole = turn.state is TurnState.COMPLETED and all(end.reason != "length" for end in turn.ends)
    return "completed" if whole else "incomplete"


def answers(turn: Turn) -> tuple[Item, ...]:
    """The answer of a turn as items: texts and tool calls in their order, or an empty text. If the turn was cut off,
    its last item is incomplete."""
    parts = parts_of(turn.tokens) or [Part()]
    items: list[Item] = []
    num_texts = 0
    for number, part in enumerate(parts, start=1):
        status = answer_status(turn) if number == len(parts) else "completed"
        if call := part.call:
            items.append(_call_item(turn.id, call, status))
        else:
            item_id = answer_id(turn.id, num_texts)
            items.append(Item(id=item_id, role="assistant", texts=(part.text,), status=status))
            num_texts += 1
    return tuple(items)


def _call_item(turn_id: str, call: CallPiece, status: str) -> Item:
    return Item(
        type="function_call",
        id=call_item_id(turn_id, call.index),
        role="assistant",
        texts=(call.arguments,),
        status=status,
        call_id=call_id(turn_id, 0, call.index),
        name=call.name,
    )


def said(turn: Turn) -> tuple[Item, ...]:
    """The items that a turn adds to its session: its input and its answer; none unless it completed."""
    if turn.state is not TurnState.COMPLETED or turn.job.purged:
        return ()
    return (*turn.job.items, *answers(turn))


def entry_of(turn: Turn) -> Entry:
    """Converts a turn to a step of its session."""
    return Entry(
        ordinal=turn.job.ordinal,
        at=turn.opened_at,
        id=turn.id,
        items=said(turn),
        previous=turn.job.previous,
        running=not turn.state.terminal,
    )


def items_in_order(entries: Iterable[Entry], hidden: Collection[str] = ()) -> tuple[Item, ...]:
    """The items of a conversation in order, without the ``hidden`` (removed) ones."""
    ordered = sorted(entries, key=_sort_key)
    return tuple(item for entry in ordered for item in entry.items if item.id not in hidden)


def before(entries: Sequence[Entry], step: Entry) -> list[Entry]:
    """The steps of a conversation that precede ``step``."""
    return [entry for entry in entries if _sort_key(entry) < _sort_key(step)]


def chain(turns: Mapping[str, Entry], last: str) -> list[Entry]:
    """The turns that lead to ``last``, itself included, the oldest first, as far back as they are known."""
    found: dict[str, Entry] = {}
    while (turn := turns.get(last)) is not None and last not in found:
        found[last] = turn
        last = turn.previous
    return list(reversed(found.values()))


def _sort_key(entry: Entry) -> tuple[int, float, str]:
    return entry.ordinal, entry.at, entry.id

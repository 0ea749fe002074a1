"""A session's history, as pure functions of its turns: a turn's own record is the source of what was said in it.

A session is a conversation, which has a name of its own and items that were added by hand, or a chain of turns of which
each names the one it goes on from. A turn that did not complete has said nothing: asked again, it is not said twice.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from axon.domain.item import Item
from axon.domain.turn import Turn, TurnState

PREFIX = "conv_"
"""Of a conversation's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """What a tenant named and keeps."""

    id: str
    tenant: str
    created_at: float
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One step of a session: a turn, or items that were added by hand. Of equal ordinals the earlier is first."""

    ordinal: int
    at: float
    id: str
    items: tuple[Item, ...]
    """What was said in it; nothing in a turn that did not complete."""
    previous: str = ""
    """The turn that a turn goes on from, where it names one."""
    running: bool = False
    """A turn that has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What was said before a turn."""

    session: str
    ordinal: int = 0
    """Of the last step."""
    items: tuple[Item, ...] = ()


def is_conversation(session: str) -> bool:
    return session.startswith(PREFIX)


def answer_id(turn_id: str) -> str:
    """The name of a turn's answer among the items."""
    return f"msg_{turn_id.partition('_')[2]}"


def answer(turn: Turn) -> Item:
    """What the model said in a turn, as far as it came."""
    whole = turn.state is TurnState.COMPLETED and all(end.reason != "length" for end in turn.ends)
    return Item(
        id=answer_id(turn.id),
        role="assistant",
        texts=("".join(token.text for token in turn.tokens),),
        status="completed" if whole else "incomplete",
    )


def said(turn: Turn) -> tuple[Item, ...]:
    """What a turn adds to its session: its input and its answer, or nothing."""
    if turn.state is not TurnState.COMPLETED or turn.job.purged:
        return ()
    return (*turn.job.items, answer(turn))


def entry_of(turn: Turn) -> Entry:
    """The turn as a step of its session."""
    return Entry(
        ordinal=turn.job.ordinal,
        at=turn.opened_at,
        id=turn.id,
        items=said(turn),
        previous=turn.job.previous,
        running=not turn.state.terminal,
    )


def told(entries: Iterable[Entry], hidden: Collection[str] = ()) -> tuple[Item, ...]:
    """The items of a conversation in order, those left out that were taken away."""
    ordered = sorted(entries, key=_place)
    return tuple(item for entry in ordered for item in entry.items if item.id not in hidden)


def before(entries: Sequence[Entry], step: Entry) -> list[Entry]:
    """The steps that came before one of a conversation."""
    return [entry for entry in entries if _place(entry) < _place(step)]


def chain(turns: Mapping[str, Entry], last: str) -> list[Entry]:
    """The turns that lead to ``last``, itself included, the oldest first, as far back as they are known."""
    found: dict[str, Entry] = {}
    while (turn := turns.get(last)) is not None and last not in found:
        found[last] = turn
        last = turn.previous
    return list(reversed(found.values()))


def _place(entry: Entry) -> tuple[int, float, str]:
    return entry.ordinal, entry.at, entry.id

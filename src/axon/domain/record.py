"""What the journal carries, and what is to be done with a batch of it. Knows no journal, no store and no clock.

A record is a turn as it stood at a change, or a barrier's marker. Records may come late, twice or reordered; a marker
is noted after everything that came before it, so whoever sees it noted can read all of that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from axon.domain import wire
from axon.domain.turn import Turn
from axon.errors import DependencyDown

REFUSED = "record_refused"
"""The code of a failure that no retry would change."""
UNREADABLE = "record_unreadable"


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """A barrier in the journal."""

    v: int = 1
    barrier: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{1,64}$")]
    """Its id; whatever else is read here was no marker, and no store is troubled with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Records in the order they came, sorted by what is asked of the store. Numbers are places in the batch."""

    turns: tuple[tuple[int, Turn], ...]
    marker_ids: tuple[str, ...]
    unreadable: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a batch's turns: set aside for good, or to be written again."""

    aside: tuple[tuple[int, str], ...]
    again: tuple[tuple[int, Turn], ...]


def encode(record: Turn | Marker) -> bytes:
    """The record's bytes."""
    return msgspec.msgpack.encode(record) if isinstance(record, Marker) else wire.encode(record)


def decode(body: bytes) -> Turn | Marker:
    """The record in these bytes; raises ``msgspec.DecodeError`` when they hold none."""
    try:
        return wire.decode(Turn, body)
    except msgspec.DecodeError as not_a_turn:
        try:
            return msgspec.msgpack.decode(body, type=Marker)
        except msgspec.DecodeError:
            raise not_a_turn from None


def sort(bodies: Sequence[bytes]) -> Batch:
    """Reads a batch. What was erased since is the store's to refuse, in the transaction that would write it."""
    turns: list[tuple[int, Turn]] = []
    marker_ids: list[str] = []
    unreadable: list[int] = []
    for number, body in enumerate(bodies):
        try:
            record = decode(body)
        except (msgspec.DecodeError, ValueError, TypeError, RecursionError):
            unreadable.append(number)
            continue
        if isinstance(record, Marker):
            marker_ids.append(record.barrier)
        else:
            turns.append((number, record))
    return Batch(turns=tuple(turns), marker_ids=tuple(marker_ids), unreadable=tuple(unreadable))


def judge(turns: Sequence[tuple[int, Turn]], outcomes: Sequence[DependencyDown | None]) -> Verdict:
    """A record that the store refuses is set aside; whatever else failed may succeed later."""
    told = list(zip(turns, outcomes, strict=True))
    return Verdict(
        aside=tuple((number, REFUSED) for (number, _), failure in told if failure and failure.code == REFUSED),
        again=tuple(entry for entry, failure in told if failure and failure.code != REFUSED),
    )

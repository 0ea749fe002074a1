"""Records of the journal, and what the persister does with a batch of them. Knows no journal, no store and no clock.

A record is a turn at a change of its state, or a barrier's marker. Records may come late, twice or reordered. A marker
is written to the store after every record before it, so whoever finds it there can read all of those.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from axon.domain import wire
from axon.domain.turn import Turn
from axon.errors import DependencyDown

REFUSED = "record_refused"
"""Code of a failure that a retry would not change."""
UNREADABLE = "record_unreadable"


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """A barrier in the journal."""

    v: int = 1
    barrier: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{1,64}$")]
    """The marker's id; the pattern keeps bytes that only look like a marker away from the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Decoded records in the order they came, by kind. Numbers are indices into the batch."""

    turns: tuple[tuple[int, Turn], ...]
    marker_ids: tuple[str, ...]
    unreadable: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Decision about turns that were not written: each is set aside for good, or written again."""

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
    """Decodes a batch. It does not look for tombstones: the store does, in the transaction that writes."""
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
    """Sets aside records that the store refuses; any other failure may succeed later."""
    results = list(zip(turns, outcomes, strict=True))
    return Verdict(
        aside=tuple((number, REFUSED) for (number, _), failure in results if failure and failure.code == REFUSED),
        again=tuple(entry for entry, failure in results if failure and failure.code != REFUSED),
    )

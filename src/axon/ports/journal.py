"""The write-ahead log in front of the store: an accepted turn survives any one process."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from axon.domain.turn import Turn


class Journal(Protocol):
    """Turns on their way to the store."""

    async def append(self, turns: Sequence[Turn]) -> None:
        """Returns when the records are durable; raises ``DependencyDown`` when that is not known."""

    async def barrier(self, *, timeout_s: float) -> None:
        """Returns when everything appended before it can be read in the store; raises ``DependencyDown``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record as the persister holds it until it acks it: a tag and the record's bytes."""

    tag: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What is in the journal and not in the store yet, as far as this process knows."""

    num_records: int = 0
    oldest_s: float = 0.0
    """Seconds since the oldest of them came to this reader; 0 without any. A reader that has lost its connection counts
    anew, so that a record may be older."""
    num_bytes: int = 0
    """Their size; of those that no reader has yet, by the mean size of the others."""


class JournalReader(Protocol):
    """The reading end of the journal. Only one of several readers gets records at a time; when it is lost, the next one
    gets those that it had not acked."""

    async def read(self, limit: int) -> Sequence[Record]:
        """Returns the next records in order, at most ``limit``; waits for the first. Raises ``DependencyDown``."""

    async def ack(self, last: Record) -> None:
        """Acknowledges this record and all before it: they are in the store. After a lost connection it does
        nothing."""

    async def pending(self) -> Pending:
        """Counts what was not acked yet, by all readers together. Raises ``DependencyDown``."""

    async def set_aside(self, record: Record, reason: str) -> None:
        """Keeps a copy of a record that cannot be written, for people to look at."""

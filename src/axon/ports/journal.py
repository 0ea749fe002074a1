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
    """A record's bytes in the persister's hands, until it is acked."""

    tag: int
    body: bytes


class JournalReader(Protocol):
    """The journal's other end. Of several readers one is fed; what it has not acked when it is lost comes again."""

    async def read(self, limit: int) -> Sequence[Record]:
        """What has arrived, in order; waits for the first. Raises ``DependencyDown``."""

    async def ack(self, last: Record) -> None:
        """This record and every one read before it are in the store; of a lost connection, harmless."""

    async def set_aside(self, record: Record, reason: str) -> None:
        """Keeps a copy of a record that cannot be written, for people to look at."""

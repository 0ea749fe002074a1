"""The write-ahead log in front of the store: an accepted turn survives any one process."""

from collections.abc import Sequence
from typing import Protocol

from axon.domain.turn import Turn


class Journal(Protocol):
    """Turns on their way to the store."""

    async def append(self, turns: Sequence[Turn]) -> None:
        """Returns when the records are durable; raises ``DependencyDown`` when that is not known."""

    async def barrier(self, *, timeout_s: float) -> None:
        """Returns when everything appended before it can be read in the store; raises ``DependencyDown``."""

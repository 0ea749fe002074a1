"""Durable records. Each aggregate has its own narrow port; a store opens and closes them together."""

from collections.abc import Sequence
from typing import Protocol

from axon.domain.key import Key
from axon.domain.turn import Turn
from axon.errors import DependencyDown


class KeyStore(Protocol):
    """API keys."""

    async def add(self, key: Key) -> None: ...

    async def find(self, key_id: str) -> Key | None: ...

    async def all(self) -> Sequence[Key]:
        """Every key, the oldest first."""

    async def revoke(self, key_id: str, *, at: float) -> bool:
        """False when there is no such key; a revoked key keeps its first time."""


class TurnStore(Protocol):
    """Turns, written from the journal."""

    async def apply(self, turns: Sequence[Turn]) -> None:
        """Upserts each turn whose rank is higher than the stored one's; late and repeated records change nothing."""

    async def get(self, turn_id: str) -> Turn | None: ...

    async def unfinished(self, *, limit: int) -> Sequence[Turn]:
        """Turns that were accepted and have not ended, the oldest first."""

    async def purge(self, *, ended_before: float) -> int:
        """Forgets prompt and text of ended turns (not of retained ones); their usage stays. Returns how many."""


class TurnWriter(Protocol):
    """The part of a turn store that the persister needs."""

    async def write(self, turns: Sequence[Turn]) -> Sequence[DependencyDown | None]:
        """Commits the turns together; what became of each, in order. ``record_refused`` is for good."""


class Markers(Protocol):
    """How far the journal has been written: a barrier's marker is noted after everything before it."""

    async def put(self, marker_ids: Sequence[str], *, at: float) -> None:
        """Notes them, twice if need be, and forgets those that nobody waits for any more."""

    async def seen(self, marker_id: str) -> bool: ...


class Store(Protocol):
    """The aggregates."""

    @property
    def keys(self) -> KeyStore: ...

    @property
    def turns(self) -> TurnStore: ...

    @property
    def markers(self) -> Markers: ...

    async def ping(self) -> None:
        """Raises ``DependencyDown`` when the store does not answer."""

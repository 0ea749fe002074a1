"""Durable records. Each aggregate has its own narrow port; a store opens and closes them together."""

from collections.abc import Sequence
from typing import Protocol

from axon.domain.key import Key
from axon.domain.turn import Turn


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


class Store(Protocol):
    """The aggregates."""

    @property
    def keys(self) -> KeyStore: ...

    @property
    def turns(self) -> TurnStore: ...

    async def ping(self) -> None:
        """Raises ``DependencyDown`` when the store does not answer."""

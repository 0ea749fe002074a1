"""Writes changes of the registry and tells followers of them. Decides nothing about what may be changed."""

from collections.abc import Sequence
from dataclasses import replace

from axon.domain.registry.record import Edit, Record
from axon.ports.store import RegistryStore
from axon.registry.revisions import Revisions
from axon.runtime.clock import Clock


class RegistryWriter:
    """For the admin API and for control; without ``revisions`` followers learn of a change from the store alone."""

    def __init__(self, store: RegistryStore, clock: Clock, revisions: Revisions | None = None) -> None:
        self._store, self._clock, self._revisions = store, clock, revisions

    async def write(
        self, edits: Sequence[Edit], *, actor: str, over: int | None = None
    ) -> tuple[Record | None, ...] | None:
        """Makes all changes or none; returns the records as they are stored now, with their revisions (None for a
        removed one). None when a comparison failed: somebody else has changed one of them, or R is not ``over``."""
        revision = await self._store.write_all(edits, actor=actor, at=self._clock.now(), over=over)
        if revision is None:
            return None
        if self._revisions is not None:
            await self._revisions.tell(revision)
        first = revision - len(edits) + 1
        return tuple(new and replace(new, revision=first + index) for index, (_, new) in enumerate(edits))

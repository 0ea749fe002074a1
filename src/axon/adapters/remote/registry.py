"""The registry between a front and the hub. Its records are sent as rows, because a message's value has one type."""

from collections.abc import Sequence
from typing import Protocol

from axon.domain.registry.change import Change
from axon.domain.registry.record import Edit, Record, Row, record_of, row_of
from axon.domain.registry.snapshot import Snapshot
from axon.ports.store import RegistryStore


class RegistryRows(Protocol):
    """The registry, with rows in place of records."""

    async def snapshot(self) -> Snapshot: ...

    async def revision(self) -> int: ...

    async def write_rows(
        self, edits: Sequence[tuple[Row | None, Row | None]], *, actor: str, at: float, over: int | None
    ) -> int | None: ...

    async def changes(self, *, after: int, limit: int, kind: str = "", name: str = "") -> Sequence[Change]: ...

    async def removals(self, *, kind: str, name: str) -> Sequence[Change]: ...


class ServedRegistry:
    """The hub's end."""

    def __init__(self, store: RegistryStore) -> None:
        self._store = store
        self.snapshot, self.revision = store.snapshot, store.revision
        self.changes, self.removals = store.changes, store.removals

    async def write_rows(
        self, edits: Sequence[tuple[Row | None, Row | None]], *, actor: str, at: float, over: int | None
    ) -> int | None:
        read = [(_record(old), _record(new)) for old, new in edits]
        return await self._store.write_all(read, actor=actor, at=at, over=over)


class RemoteRegistry:
    """A front's end."""

    def __init__(self, rows: RegistryRows) -> None:
        self._rows = rows
        self.snapshot, self.revision = rows.snapshot, rows.revision
        self.changes, self.removals = rows.changes, rows.removals

    async def write(
        self, old: Record | None, new: Record | None, *, actor: str, at: float, over: int | None = None
    ) -> int | None:
        return await self.write_all([(old, new)], actor=actor, at=at, over=over)

    async def write_all(self, edits: Sequence[Edit], *, actor: str, at: float, over: int | None = None) -> int | None:
        rows = [(_row(old), _row(new)) for old, new in edits]
        return await self._rows.write_rows(rows, actor=actor, at=at, over=over)


def _row(record: Record | None) -> Row | None:
    return None if record is None else row_of(record)


def _record(row: Row | None) -> Record | None:
    return None if row is None else record_of(row)

"""Makes a backup: the store's tables from one consistent view, then the files that they name, then the pepper."""

from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import Connection, func, select

from axon.adapters.backup import files
from axon.adapters.backup.contents import check_revision, columns_of, revision_of, rows_of, tables_of
from axon.adapters.backup.database import snapshot
from axon.adapters.backup.naming import TABLES
from axon.adapters.backup.rows import RowSum, packed
from axon.adapters.backup.writing import PEPPER, ArchiveWriter, new_archive
from axon.adapters.service_address import ServiceAddress
from axon.adapters.store import schema
from axon.domain.backup import FilesFacts, Manifest, TableFacts, pepper_facts
from axon.domain.turn import TurnState
from axon.runtime.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is backed up."""

    store: ServiceAddress
    """The store."""
    files: Path | None
    """Folder of the files' bytes; None to leave them out."""
    no_files: str = ""
    """Why they are left out."""
    pepper: bytes | None
    """None where this machine has none."""
    with_secrets: bool = True
    axon: str
    """Version of Axon."""


def create(source: Source, path: Path, clock: Clock) -> Manifest:
    """Writes the archive and returns its manifest. The servers that use the store go on meanwhile."""
    with new_archive(path) as file, snapshot(source.store) as connection:
        created_at = clock.now()
        revision = check_revision(revision_of(connection))  # the first read, which fixes what is seen from here on
        writer = ArchiveWriter(file, at=created_at)
        tables = _write_tables(connection, writer)
        manifest = Manifest(
            axon=source.axon,
            database=connection.dialect.name,
            revision=revision,
            created_at=created_at,
            num_unfinished=_num_unfinished(connection),
            tables=tables,
            files=_write_files(connection, writer, source),
            pepper=None if source.pepper is None else pepper_facts(source.pepper, included=source.with_secrets),
            parts=(),
        )
        if source.pepper is not None and source.with_secrets:
            writer.add(PEPPER, source.pepper)
        manifest = replace(manifest, parts=tuple(writer.parts))
        writer.finish(manifest)
    return manifest


def _write_tables(connection: Connection, writer: ArchiveWriter) -> tuple[TableFacts, ...]:
    found = []
    for table in tables_of(connection):
        total = RowSum()
        for number, part in enumerate(packed(rows_of(connection, table), total)):
            writer.add(f"{TABLES}/{table.name}/{number:06d}.rows.gz", part)
        found.append(
            TableFacts(name=str(table.name), columns=columns_of(table), num_rows=total.num_rows, digest=total.digest)
        )
    return tuple(found)


def _write_files(connection: Connection, writer: ArchiveWriter, source: Source) -> FilesFacts:
    if source.files is None:
        return FilesFacts(included=False, note=source.no_files)
    if not any(table.name == schema.files.name for table in tables_of(connection)):
        return FilesFacts(included=True)
    query = select(schema.files.c.id)
    return files.back_up(writer, source.files, connection.scalars(query, execution_options={"yield_per": 1000}))


def _num_unfinished(connection: Connection) -> int:
    opened = schema.turns.c.rank == TurnState.OPENED.rank
    return int(connection.scalar(select(func.count()).select_from(schema.turns).where(opened)) or 0)

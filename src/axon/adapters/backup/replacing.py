"""Replaces a store by a backup: all of it or nothing. Knows neither the pepper nor the bytes of files.

PostgreSQL does it in one transaction. For SQLite a new file is made beside the old one, and renamed over it at the end.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from axon.adapters.backup.contents import check_revision, is_empty, revision_of, tables_of
from axon.adapters.backup.database import file_of, is_sqlite, new_file, snapshot, transaction, users_of
from axon.adapters.backup.keeping import Kept, apply_kept, nothing_kept, read_kept
from axon.adapters.backup.loading import as_of_a_store, load
from axon.adapters.backup.reading import Archive
from axon.adapters.backup.settling import Known, Settled, settle
from axon.adapters.service_address import ServiceAddress
from axon.domain.backup import Manifest, RestoreOptions
from axon.errors import AxonError, Misconfigured
from axon.runtime.clock import Clock
from axon.runtime.error_text import first_line
from axon.runtime.failpoints import failpoint
from axon.runtime.syncing import sync

_DRAFT = ".restoring"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Old:
    """The store that is to be replaced."""

    connection: Connection | None = None
    """None if there is none, or if it cannot be opened."""
    damage: str = ""
    """Why it cannot be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """What was done besides the replacement."""

    settled: Settled
    num_kept: int
    """Revocations, suspensions, removals and erasures that were carried over from the store that was replaced."""
    lost: tuple[str, ...] = ()
    """The kinds of these that could not be read there."""


@contextmanager
def replaced(
    address: ServiceAddress,
    archive: Archive,
    manifest: Manifest,
    options: RestoreOptions,
    clock: Clock,
    *,
    known: Known | None,
) -> Iterator[Replaced]:
    """Prepares the replacement, and makes it visible when the block ends; if the block raises, nothing has changed.

    ``known`` tells which turns the live service knows; None leaves every unfinished turn to be run again.
    """
    with _in_file(address, options) if is_sqlite(address) else _in_database(address, options) as (connection, old):
        kept = _read_kept(old, manifest)
        if kept.unread and not options.lose_revocations:
            raise _not_carried(kept)
        load(connection, archive, manifest)
        with as_of_a_store():
            apply_kept(connection, kept)
            settled = settle(connection, now=clock.now(), known=known)
        failpoint("restore.loaded")
        yield Replaced(settled=settled, num_kept=kept.num, lost=tuple(kept.unread))


def rehearse(connection: Connection, archive: Archive, manifest: Manifest, clock: Clock) -> None:
    """Does to a scratch store what ``replaced`` does to a real one, and compares the rows."""
    load(connection, archive, manifest, compare=True)
    with as_of_a_store():
        settle(connection, now=clock.now(), known=lambda _ids: ())


@contextmanager
def _in_database(address: ServiceAddress, options: RestoreOptions) -> Iterator[tuple[Connection, _Old]]:
    with transaction(address) as connection:
        has_tables = revision_of(connection) is not None
        if has_tables and not options.force and not is_empty(connection):
            raise _not_empty("The PostgreSQL database")
        if (num := users_of(connection)) and not options.while_running:
            raise Misconfigured(
                f"Servers have {num} connections to this database. Stop gateways, workers and control first, or add "
                "--while-running: their requests then wait until the restore is over."
            )
        if has_tables:  # what is revoked or erased from here on waits, and so is not lost
            names = ", ".join(table.name for table in tables_of(connection))
            connection.exec_driver_sql(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
        yield connection, _Old(connection=connection if has_tables else None)


@contextmanager
def _in_file(address: ServiceAddress, options: RestoreOptions) -> Iterator[tuple[Connection, _Old]]:
    path = file_of(address)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(path.name + _DRAFT)
    draft.unlink(missing_ok=True)  # of a restore that was killed
    try:
        with contextlib.ExitStack() as stack:
            old = _old_file(address, options, stack)
            with new_file(draft) as connection:
                yield connection, old
        _swap(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _old_file(address: ServiceAddress, options: RestoreOptions, stack: contextlib.ExitStack) -> _Old:
    path = file_of(address)
    if not path.exists() or not path.stat().st_size:
        return _Old()
    try:
        connection = stack.enter_context(snapshot(address))
        if not _is_used(connection):
            return _Old()
    except (AxonError, SQLAlchemyError) as error:
        if not options.force:
            raise Misconfigured(
                f"{path} cannot be read as a store. --force --lose-revocations replaces it; what was revoked or erased "
                "since the backup then comes back."
            ) from None
        return _Old(damage=first_line(error))
    if not options.force:
        raise _not_empty(str(path))
    return _Old(connection=connection)


def _is_used(connection: Connection) -> bool:
    """Whether a file has anything that somebody would miss: rows of ours, or another program's tables."""
    if not inspect(connection).get_table_names():
        return False
    try:
        return revision_of(connection) is None or not is_empty(connection)
    except SQLAlchemyError:  # a damaged table: what the others have may be carried over
        return True


def _swap(draft: Path, path: Path) -> None:
    """Puts the new file in the old one's place. The old write-ahead log goes first: SQLite would replay it into the new
    file. What is in it was copied into the old file before, so that this is still whole until the rename."""
    sync(draft)
    if path.exists():
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            old.execute("PRAGMA journal_mode=DELETE")
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    failpoint("restore.swap")
    os.replace(draft, path)
    sync(path.parent)


def _read_kept(old: _Old, manifest: Manifest) -> Kept:
    if old.damage:
        return nothing_kept(old.damage)
    if old.connection is None:
        return Kept()
    if (revision := _known_revision(old.connection)) is not None:
        check_revision(revision)
    return read_kept(old.connection, since=manifest.created_at)


def _known_revision(connection: Connection) -> str | None:
    """The migration of the store; None also where a damaged SQLite file does not tell it any more."""
    try:
        return revision_of(connection)
    except SQLAlchemyError:
        if connection.dialect.name != "sqlite":
            raise
        return None


def _not_carried(kept: Kept) -> Misconfigured:
    return Misconfigured(
        f"The store that is to be replaced is damaged ({kept.reason}). These cannot be carried over: "
        f"{', '.join(kept.unread)}. Keys, tenants and texts that ended since the backup would come back. To restore "
        "all the same, add --lose-revocations, and revoke, remove and erase them again."
    )


def _not_empty(what: str) -> Misconfigured:
    return Misconfigured(
        f"{what} is not empty. To replace what is there, add --force; to keep it, name another store with --store."
    )

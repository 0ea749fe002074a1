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

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from axon.adapters.backup.contents import check_revision, is_empty, revision_of, tables_of
from axon.adapters.backup.database import is_sqlite, new_file, snapshot, transaction, users_of
from axon.adapters.backup.keeping import Kept, apply_kept, read_kept
from axon.adapters.backup.loading import load
from axon.adapters.backup.reading import Archive
from axon.adapters.backup.settling import Known, Settled, settle
from axon.adapters.backup.writing import sync_folder
from axon.adapters.store import schema
from axon.adapters.store.sqlite import sqlite_path
from axon.domain.backup import Manifest
from axon.errors import AxonError, Misconfigured
from axon.runtime.clock import Clock
from axon.runtime.failpoints import failpoint

_DRAFT = ".restoring"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a store is to be replaced."""

    force: bool = False
    """Whether a store that has something in it may be replaced."""
    while_running: bool = False
    """Whether servers may be connected to the PostgreSQL database."""
    known: Known | None = None
    """Tells which turns the live service knows; None to leave every unfinished turn to be run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """What was done besides the replacement."""

    settled: Settled
    num_kept: int
    """Revocations, suspensions, removals and erasures that were carried over from the store that was replaced."""
    unread: str = ""
    """Why nothing could be carried over from it."""


@contextmanager
def replaced(url: str, archive: Archive, manifest: Manifest, wish: Wish, clock: Clock) -> Iterator[Replaced]:
    """Prepares the replacement, and makes it visible when the block ends; if the block raises, nothing has changed."""
    with _in_file(url, wish) if is_sqlite(url) else _in_database(url, wish) as (connection, old):
        kept, unread = _read_kept(old, manifest) if old is not None else (Kept(), "")
        load(connection, archive, manifest)
        apply_kept(connection, kept)
        settled = settle(connection, now=clock.now(), known=wish.known)
        failpoint("restore.loaded")
        yield Replaced(settled=settled, num_kept=kept.num, unread=unread)


@contextmanager
def _in_database(url: str, wish: Wish) -> Iterator[tuple[Connection, Connection | None]]:
    with transaction(url) as connection:
        has_tables = revision_of(connection) is not None
        if has_tables and not wish.force and not is_empty(connection):
            raise _not_empty("The PostgreSQL database")
        if (num := users_of(connection)) and not wish.while_running:
            raise Misconfigured(
                f"Servers have {num} connections to this database. Stop gateways, workers and control first, or add "
                "--while-running: their requests then wait until the restore is over."
            )
        if has_tables:  # what is revoked or erased from here on waits, and so is not lost
            names = ", ".join(table.name for table in tables_of(connection))
            connection.exec_driver_sql(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
        yield connection, connection if has_tables else None


@contextmanager
def _in_file(url: str, wish: Wish) -> Iterator[tuple[Connection, Connection | None]]:
    path = sqlite_path(url)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(path.name + _DRAFT)
    draft.unlink(missing_ok=True)  # of a restore that was killed
    try:
        with contextlib.ExitStack() as stack:
            old = _old_file(url, wish, stack)
            with new_file(draft) as connection:
                yield connection, old
        _swap(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _old_file(url: str, wish: Wish, stack: contextlib.ExitStack) -> Connection | None:
    """The store that is to be replaced; None if there is none, or if it is too damaged to be read."""
    path = sqlite_path(url)
    if not path.exists() or not path.stat().st_size:
        return None
    try:
        old = stack.enter_context(snapshot(url))
        if revision_of(old) is None or is_empty(old):
            return None
    except (AxonError, SQLAlchemyError):
        if not wish.force:
            raise Misconfigured(f"{path} cannot be read as a store. --force replaces it.") from None
        return None
    if not wish.force:
        raise _not_empty(str(path))
    return old


def _swap(draft: Path, path: Path) -> None:
    """Puts the new file in the old one's place. The old write-ahead log goes first: SQLite would replay it into the new
    file. What is in it was copied into the old file before, so that this is still whole until the rename."""
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    if path.exists():
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            old.execute("PRAGMA journal_mode=DELETE")
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    failpoint("restore.swap")
    os.replace(draft, path)
    sync_folder(path.parent)


def _read_kept(old: Connection, manifest: Manifest) -> tuple[Kept, str]:
    revision = revision_of(old)
    if check_revision(revision) != schema.HEAD:
        return Kept(), f"it is at migration {revision}, not {schema.HEAD}"
    return read_kept(old, since=manifest.created_at), ""


def _not_empty(what: str) -> Misconfigured:
    return Misconfigured(
        f"{what} is not empty. To replace what is there, add --force; to keep it, name another store with --store."
    )

"""Backups for the command line: which store, files and pepper a machine has, and the order in which they change."""

import asyncio
import tempfile
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from axon.bootstrap.gateway.batches import files_folder
from axon.bootstrap.services import open_live, store_address
from axon.errors import DependencyDown, InvalidInput, Misconfigured
from axon.runtime import failpoints
from axon.runtime.clock import SystemClock
from axon.runtime.datafolder import locked, replace_secret, shared
from axon.runtime.restoring import marked, require_whole
from axon.settings import Settings
from axon.telemetry.build import version

if TYPE_CHECKING:
    from axon.adapters.backup.reading import Archive
    from axon.adapters.backup.settling import Settled
    from axon.domain.backup import Manifest, RestoreOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What a restore has done, and what the operator has to know."""

    manifest: "Manifest"
    num_ended: int
    num_left: int
    num_kept: int
    lost: tuple[str, ...] = ()
    """Kinds of revocations and erasures that the replaced store had and that could not be read there."""
    warnings: tuple[str, ...] = ()


def create_backup(settings: Settings, path: Path, *, with_secrets: bool = True, with_files: bool = True) -> "Manifest":
    """Backs up the store, the files' bytes and the pepper into one archive, beside whatever runs."""
    from axon.adapters.backup.creating import Source, create

    failpoints.arm(settings.failpoints)
    require_whole(settings.data_dir)
    folder = files_folder(settings)
    left_out = f"they are in {settings.batches.files_dir}" if folder is None else "left out with --without-files"
    source = Source(
        store=store_address(settings),
        files=folder if with_files else None,
        no_files=left_out,
        pepper=_pepper(settings),
        with_secrets=with_secrets,
        axon=version(),
    )
    return create(source, path, SystemClock())


def verify_backup(path: Path, *, into: str = "") -> "Manifest":
    """Compares every digest, then restores the tables into a scratch store and compares their contents.

    The scratch store is a temporary SQLite file, or the PostgreSQL database ``into``, which must be empty and is empty
    afterwards.
    """
    from axon.adapters.backup.contents import check_revision, require_empty
    from axon.adapters.backup.database import is_sqlite, new_file, transaction
    from axon.adapters.backup.reading import Archive
    from axon.adapters.backup.replacing import rehearse
    from axon.adapters.service_address import ServiceAddress

    archive, clock = Archive(path), SystemClock()
    manifest = archive.check()
    check_revision(manifest.revision)
    if manifest.pepper is not None and manifest.pepper.included:
        archived_pepper(archive, manifest)
    address = ServiceAddress(url=into)
    if into and is_sqlite(address):
        raise Misconfigured("--into names a PostgreSQL database; without it, a temporary SQLite file is used.")
    with ExitStack() as stack:
        if not into:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="axon-verify-")))
            rehearse(stack.enter_context(new_file(folder / "axon.db")), archive, manifest, clock)
        else:
            connection = stack.enter_context(transaction(address))
            require_empty(connection)
            rehearse(connection, archive, manifest, clock)
            connection.rollback()
    return manifest


def upload_backup(path: Path, url: str) -> str:
    """Copies a backup into a bucket, ``s3://bucket/prefix``, under its own name; returns where it is then."""
    from axon.adapters.backup.peeking import require_archive
    from axon.adapters.backup.uploading import upload

    require_archive(path)
    return upload(path, url)


def restore_backup(settings: Settings, path: Path, options: "RestoreOptions") -> Restored:
    """Replaces the store, the files' bytes and the pepper by those of a backup.

    Until all of it is prepared nothing changes. Then a mark in the data folder keeps servers from starting until the
    rest is done.
    """
    from axon.adapters.backup.contents import check_revision
    from axon.adapters.backup.database import is_sqlite, require_unused
    from axon.adapters.backup.files import restore as restore_files
    from axon.adapters.backup.reading import Archive
    from axon.adapters.backup.replacing import replaced

    failpoints.arm(settings.failpoints)
    archive = Archive(path)
    manifest = archive.check()
    check_revision(manifest.revision)
    clock, store = SystemClock(), store_address(settings)
    hold = shared if options.while_running and not is_sqlite(store) else locked
    with hold(settings.data_dir):
        if is_sqlite(store):
            require_unused(store)
        pepper, warnings = _new_pepper(settings, archive, manifest, force=options.force)
        folder = files_folder(settings)
        if manifest.files.num_files and folder is None:
            warnings.append(
                f"The backup's {manifest.files.num_files} files are left out: this server's are in a bucket."
            )
        known = None if options.run_unfinished else lambda ids: _known(settings, ids)
        with ExitStack() as prepared:
            done = prepared.enter_context(replaced(store, archive, manifest, options, clock, known=known))
            if manifest.files.included and folder is not None:
                restore_files(archive, manifest, folder)
            with marked(settings.data_dir, f"from {path.name}"):
                failpoints.failpoint("restore.marked")
                if pepper is not None:
                    replace_secret(settings.data_dir / "pepper", pepper)
                prepared.close()  # from here on the new store is the one that is seen
                failpoints.failpoint("restore.replaced")
    if done.lost:
        warnings.append(
            f"{', '.join(done.lost)} were not carried over from the store that was replaced, which is damaged. Keys, "
            "tenants and texts that ended since the backup are back: revoke, remove and erase them again."
        )
    return Restored(
        manifest=manifest,
        num_ended=done.settled.num_ended,
        num_left=done.settled.num_left,
        num_kept=done.num_kept,
        lost=done.lost,
        warnings=tuple(warnings),
    )


def settle_store(settings: Settings, *, run_unfinished: bool = False) -> "Settled":
    """Settles a store that was restored by other means, such as PostgreSQL's point-in-time recovery."""
    from axon.adapters.backup.contents import check_revision, revision_of
    from axon.adapters.backup.database import is_sqlite, require_unused, transaction, users_of
    from axon.adapters.backup.settling import settle
    from axon.adapters.store import schema

    store = store_address(settings)
    with ExitStack() as stack:
        if is_sqlite(store):
            stack.enter_context(locked(settings.data_dir))
            require_unused(store)
        connection = stack.enter_context(transaction(store))
        if num := users_of(connection):
            raise Misconfigured(
                f"Servers have {num} connections to this database, and settling would end what they run. Stop "
                "gateways, workers and control first."
            )
        if check_revision(revision_of(connection)) != schema.HEAD:
            raise Misconfigured(
                "The store is of an earlier release: start a server once, which migrates it, then stop it."
            )
        known = None if run_unfinished else lambda ids: _known(settings, ids)
        return settle(connection, now=SystemClock().now(), known=known)


def _known(settings: Settings, ids: Sequence[str]) -> Collection[str]:
    """The turns that the live service knows: none where it is in a process's memory, which has ended."""
    if settings.live.startswith("memory:"):
        return ()

    async def ask() -> Collection[str]:
        async with AsyncExitStack() as stack:
            live = await open_live(settings, SystemClock(), stack)
            views = await live.log.views(ids)
            return [each for each, view in zip(ids, views, strict=True) if view is not None]

    try:
        return asyncio.run(ask())
    except DependencyDown as error:
        raise DependencyDown(
            f"{error.message} A restore asks it which turns go on. Start it, or add --live memory:// if what it held "
            "is lost for good."
        ) from error


def _pepper(settings: Settings) -> bytes | None:
    """This machine's pepper; None if it has none. None is made: it would be no other server's."""
    if settings.pepper:
        return settings.pepper.encode()
    try:
        return (settings.data_dir / "pepper").read_text().strip().encode()
    except FileNotFoundError:
        return None


def _new_pepper(
    settings: Settings, archive: "Archive", manifest: "Manifest", *, force: bool
) -> tuple[bytes | None, list[str]]:
    """The pepper that is to be written, or None; and what the operator has to do about it."""
    from axon.adapters.backup.writing import PEPPER
    from axon.domain.backup import is_pepper

    mine, facts = _pepper(settings), manifest.pepper
    if facts is None:
        return None, ["The backup knows no pepper: its keys work only where theirs is."]
    if mine is not None and is_pepper(facts, mine):
        return None, []
    if not facts.included:
        return None, [
            "The backup was made without secrets, and this machine has another pepper or none: the backup's "
            "keys work when AXON_PEPPER, or the file `pepper` in the data folder, is the one that it had."
        ]
    if settings.pepper:
        return None, [f"AXON_PEPPER is not the backup's: its keys work when it is. The archive has it as {PEPPER}."]
    if mine is not None and not force:
        raise Misconfigured(f"{settings.data_dir / 'pepper'} is not the backup's. To replace it, add --force.")
    return archived_pepper(archive, manifest), []


def archived_pepper(archive: "Archive", manifest: "Manifest") -> bytes:
    """The pepper in an archive; raises ``InvalidInput`` if it is not the one that the manifest tells of."""
    from axon.adapters.backup.writing import SECRETS
    from axon.domain.backup import is_pepper

    found = [pepper for _, pepper in archive.members(manifest, SECRETS)]
    pepper = found[0] if found else b""
    if manifest.pepper is None or not is_pepper(manifest.pepper, pepper):
        raise InvalidInput("The pepper in the backup is not the one that its manifest tells of. Use another backup.")
    return pepper

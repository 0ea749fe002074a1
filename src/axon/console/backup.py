"""``axon backup``: backs up a server's durable state into one file, proves that it can be restored, and restores it."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axon.console.administration import moment, quiet, show_json
from axon.console.flags import ConfigFile, DataDir, Json, Live, Store, of_store

if TYPE_CHECKING:
    from axon.domain.backup import Manifest
    from axon.settings import Settings

app = typer.Typer(help="Back up and restore what a server must not lose.", no_args_is_help=True)


class Unfinished(StrEnum):
    END = "end"
    RUN = "run"


ArchiveFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]
OfUnfinished = Annotated[
    Unfinished,
    typer.Option(
        "--unfinished",
        help="Turns that had not ended and that the live service does not know: end them, or run them again.",
    ),
]


@app.command()
def create(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Where to; a folder gets a file with the time in its name, - is stdout."),
    ] = None,
    without_secrets: Annotated[
        bool, typer.Option("--without-secrets", help="Leave out the pepper, which keys are hashed with.")
    ] = False,
    without_files: Annotated[
        bool, typer.Option("--without-files", help="Leave out the bytes of uploaded files and of batches' results.")
    ] = False,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Back up the store, files and the pepper. Servers go on meanwhile.

    \b
    Examples:
      axon backup create /backups
      axon backup create --store postgresql://axon@db/axon --without-secrets nightly.axon
      axon backup create - | age -r age1... > axon.backup.age
    """
    settings = _settings(store, data_dir, config_file)
    from axon.bootstrap.backups import create_backup

    target = _target(path or Path())
    manifest = create_backup(settings, target, with_secrets=not without_secrets, with_files=not without_files)
    if str(target) != "-":
        _show(manifest, f"{target} is a backup of", as_json=as_json)


@app.command()
def verify(
    path: ArchiveFile,
    into: Annotated[
        str | None,
        typer.Option(metavar="URL", help="An empty PostgreSQL database to try it in. [default: a temporary file]"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check every digest, restore the backup into a scratch store and compare its contents.

    \b
    Examples:
      axon backup verify axon-20271231T030000Z.backup
      axon backup verify nightly.axon --into postgresql://axon@db/axon_verify
    """
    _settings(None, None, None)
    from axon.bootstrap.backups import verify_backup

    _show(verify_backup(path, into=into or ""), f"{path} can be restored. It has", as_json=as_json)


@app.command()
def upload(
    path: ArchiveFile,
    url: Annotated[str, typer.Argument(metavar="S3_URL", help="A bucket, and a prefix in it: s3://bucket/prefix.")],
) -> None:
    """Copy a backup into a bucket, under its own name. Endpoint, region and key are in AWS_ variables.

    \b
    Examples:
      axon backup upload axon-20271231T030000Z.backup s3://backups/axon
    """
    _settings(None, None, None)
    from axon.bootstrap.backups import upload_backup

    print(f"{path} is now at {upload_backup(path, url)}.")


@app.command()
def restore(
    path: ArchiveFile,
    force: Annotated[bool, typer.Option("--force", help="Replace a store that is not empty, and its pepper.")] = False,
    while_running: Annotated[
        bool, typer.Option("--while-running", help="Although servers are connected to the PostgreSQL database.")
    ] = False,
    lose_revocations: Annotated[
        bool,
        typer.Option(
            "--lose-revocations",
            help="Although the store is damaged: what was revoked or erased since the backup comes back.",
        ),
    ] = False,
    unfinished: OfUnfinished = Unfinished.END,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Replace the store by a backup: all of it, or nothing. Stop the servers first.

    \b
    Examples:
      axon backup restore axon-20271231T030000Z.backup
      axon backup restore nightly.axon --store postgresql://axon@db/axon --live redis://cache --force
      axon backup restore moved.axon --unfinished run
    """
    settings = _settings(store, data_dir, config_file, live)
    from axon.bootstrap.backups import restore_backup
    from axon.domain.backup import RestoreOptions

    options = RestoreOptions(
        force=force,
        while_running=while_running,
        lose_revocations=lose_revocations,
        run_unfinished=unfinished is Unfinished.RUN,
    )
    done = restore_backup(settings, path, options)
    for warning in done.warnings:
        print(f"axon: {warning}", file=sys.stderr)
    facts = {"ended": done.num_ended, "left": done.num_left, "carried_over": done.num_kept, "lost": list(done.lost)}
    _show(done.manifest, f"The store is that of {path}:", as_json=as_json, more=facts)
    if not as_json:
        print(_fate(done.num_ended, done.num_left))
        if done.num_kept:
            print(f"{done.num_kept} revocations, suspensions, removals and erasures of the replaced store still hold.")


@app.command()
def settle(
    unfinished: OfUnfinished = Unfinished.END,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Make a store fit to be used that was restored by other means: a snapshot, or recovery to a point in time.

    \b
    Examples:
      axon backup settle --store postgresql://axon@db/axon --live redis://cache
    """
    settings = _settings(store, data_dir, config_file, live)
    from axon.bootstrap.backups import settle_store

    done = settle_store(settings, run_unfinished=unfinished is Unfinished.RUN)
    if as_json:
        show_json({"ended": done.num_ended, "left": done.num_left})
    else:
        print(_fate(done.num_ended, done.num_left))


def _settings(
    store: str | None, data_dir: Path | None, config_file: Path | None, live: str | None = None
) -> "Settings":
    settings = of_store(store, data_dir, config_file, live)
    quiet(settings)
    return settings


def _target(path: Path) -> Path:
    """The file to write: itself, or one with the time in its name if it is a folder."""
    if str(path) == "-" or not path.is_dir():
        return path
    from datetime import UTC, datetime

    return path / f"axon-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup"


def _fate(num_ended: int, num_left: int) -> str:
    return f"Unfinished turns: {num_ended} ended as cancelled (code store_restored), {num_left} go on."


def _show(manifest: "Manifest", begin: str, *, as_json: bool, more: dict[str, Any] | None = None) -> None:
    if as_json:
        show_json({**_facts(manifest), **(more or {})})
        return
    files = manifest.files
    _say(
        f"{begin} {manifest.num_rows:,} rows and {files.num_files:,} files of {moment(manifest.created_at)}, "
        f"{manifest.num_bytes / 1e6:,.1f} MB, from {manifest.database} at migration {manifest.revision}."
    )
    if not files.included:
        _say(f"Files' bytes are not in it: {files.note}.")
    if files.missing:
        print(f"The bytes of {len(files.missing)} files were gone; `--json` names them.")
    secret = manifest.pepper is not None and manifest.pepper.included
    print("It has the pepper: keep it as safe as a key." if secret else "It has no pepper: keep that elsewhere.")
    _say("Not in it: " + "; ".join(manifest.not_included) + ".")


def _say(text: str) -> None:
    """Prints what an archive says: whoever made it must not steer the terminal."""
    from axon.runtime.printable import on_terminal

    print(on_terminal(text))


def _facts(manifest: "Manifest") -> dict[str, Any]:
    """The manifest without digests, of which that of the pepper's member is nobody's business."""
    files, pepper = manifest.files, manifest.pepper
    return {
        "format": manifest.format,
        "axon": manifest.axon,
        "database": manifest.database,
        "migration": manifest.revision,
        "created_at": manifest.created_at,
        "bytes": manifest.num_bytes,
        "rows": {table.name: table.num_rows for table in manifest.tables},
        "unfinished": manifest.num_unfinished,
        "files": {"included": files.included, "count": files.num_files, "missing": list(files.missing)},
        "pepper": pepper is not None and pepper.included,
        "not_included": list(manifest.not_included),
    }

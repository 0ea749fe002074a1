"""``axon backup``: backs up a server's durable state into one file, proves that it can be restored, and restores it."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axon.console.administration import quiet, show_json
from axon.console.backup.facts import facts_of, sentences_of
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
        str,
        typer.Argument(
            metavar="[FILE]",
            help="Where to. A folder, or what ends with / and is made, gets a file with the time in its name; - is "
            "stdout.",
            show_default=False,
        ),
    ] = "./",
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
      axon backup create backups/
      axon backup create --store postgresql://axon@db/axon --without-secrets nightly.axon
      axon backup create - | age -r age1... > axon.backup.age
    """
    settings = _settings(store, data_dir, config_file)
    from axon.bootstrap.backups import create_backup
    from axon.console.backup.archive_target import STANDARD_OUTPUT, target_of

    with target_of(path) as target:
        manifest = create_backup(settings, target, with_secrets=not without_secrets, with_files=not without_files)
    if path != STANDARD_OUTPUT:
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
    from axon.bootstrap.store_file import require_folder_of_store
    from axon.domain.backup import RestoreOptions

    require_folder_of_store(settings)
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
    if as_json:
        show_json({**facts_of(done.manifest), **facts})
        return
    for sentence in sentences_of(done.manifest, f"The store is that of {path}:"):
        _say(sentence)
    print(_fate(done.num_ended, done.num_left))
    if done.num_kept:
        print(
            f"Revocations, suspensions, removals and erasures of the replaced store that still hold: {done.num_kept}."
        )


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
    from axon.bootstrap.store_file import require_store

    require_store(settings)
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


def _fate(num_ended: int, num_left: int) -> str:
    return f"Unfinished turns: {num_ended} ended as cancelled (code store_restored), {num_left} go on."


def _show(manifest: "Manifest", begin: str, *, as_json: bool) -> None:
    """Shows an archive: what is in it, and what is not."""
    if as_json:
        show_json(facts_of(manifest))
        return
    for sentence in sentences_of(manifest, begin):
        _say(sentence)
    secret = manifest.pepper is not None and manifest.pepper.included
    print("It has the pepper: keep it as safe as a key." if secret else "It has no pepper: keep that elsewhere.")
    _say("Not in it: " + "; ".join(manifest.not_included) + ".")


def _say(text: str) -> None:
    """Prints what an archive says: whoever made it must not steer the terminal."""
    from axon.runtime.printable import on_terminal

    print(on_terminal(text))

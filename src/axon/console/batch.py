"""``axon batch``: submit a file of requests, watch it, fetch its answers, cancel it."""

import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axon.console.administration import show_json
from axon.console.flags import ApiKey, ConfigFile, DataDir, Json, Url, load
from axon.errors import AxonError, InvalidInput, NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axon.console.server.batch_server import BatchServer, BatchStatus

app = typer.Typer(help="Have a file of requests answered in idle capacity.", no_args_is_help=True)

_LOOK_S = 0.5
"""Seconds between two looks at a batch."""
_SHOWN = 20
"""Problems of an input that are printed."""
BatchId = Annotated[str, typer.Argument(help="The batch's id, as `axon batch submit` printed it.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end, with a progress bar.")]


@app.command()
def submit(
    file: Annotated[Path, typer.Argument(help="JSON Lines: custom_id, method, url and body in each.", metavar="FILE")],
    endpoint: Annotated[
        str | None, typer.Option(help="The API that answers. [default: the url of the file's first line]")
    ] = None,
    wait: Wait = False,
    url: Url = None,
    key: ApiKey = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Upload a file and have its requests answered. Prints the batch's id.

    Every line is checked before the first one is asked; a file with a bad line fails as a whole.

    \b
    Examples:
      axon batch submit questions.jsonl
      axon batch submit questions.jsonl --wait && axon batch fetch batch_…
      axon batch submit prompts.jsonl --endpoint /v1/completions --json
    """
    if not file.is_file():
        raise InvalidInput(f"{file} is no file." if file.exists() else f"There is no file {file}.")
    asked = endpoint or _first_url(file)
    with _server(url, key, data_dir, config_file) as server:
        batch = server.create(server.upload(file), asked)
        if not wait:
            show_json(batch.raw) if as_json else print(batch.id)
            return
        print(batch.id, file=sys.stderr)
        _finish(_watched(server, batch), as_json=as_json)


@app.command()
def status(
    batch_id: BatchId,
    wait: Wait = False,
    url: Url = None,
    key: ApiKey = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show how far a batch is. Exit code 1 if it has failed.

    \b
    Examples:
      axon batch status batch_…
      axon batch status batch_… --wait
    """
    with _server(url, key, data_dir, config_file) as server:
        batch = server.status(batch_id)
        _finish(_watched(server, batch) if wait else batch, as_json=as_json)


@app.command()
def fetch(
    batch_id: BatchId,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Answers. [default: BATCH.jsonl]")] = None,
    errors: Annotated[Path | None, typer.Option("--errors", help="Errors. [default: BATCH.errors.jsonl]")] = None,
    wait: Wait = False,
    url: Url = None,
    key: ApiKey = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Fetch the answers of a batch that has ended, and its errors if it has any. Each input line is in one of the two.

    \b
    Examples:
      axon batch fetch batch_…
      axon batch fetch batch_… --wait -o answers.jsonl --errors failed.jsonl
    """
    with _server(url, key, data_dir, config_file) as server:
        batch = server.status(batch_id)
        batch = _watched(server, batch) if wait else batch
        if not batch.is_over:
            raise Unavailable(f"{batch.id} is {batch.status}: wait with --wait, or come back later.")
        if not (batch.output_file_id or batch.error_file_id):
            _finish(batch, as_json=False)
            raise NotFound(f"{batch.id} has no files.")
        for file_id, path, suffix in (
            (batch.output_file_id, output, "jsonl"),
            (batch.error_file_id, errors, "errors.jsonl"),
        ):
            if file_id:
                _save(server, file_id, path or Path(f"{batch.id}.{suffix}"))


@app.command()
def cancel(
    batch_id: BatchId,
    url: Url = None,
    key: ApiKey = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Cancel a batch. What is done is kept, and can be fetched.

    \b
    Example:
      axon batch cancel batch_…
    """
    with _server(url, key, data_dir, config_file) as server:
        _finish(server.cancel(batch_id), as_json=as_json)


@contextmanager
def _server(url: str | None, key: str | None, data_dir: Path | None, file: Path | None) -> "Iterator[BatchServer]":
    settings = load({"data_dir": data_dir}, file).settings
    from axon.console.server.batch_server import BatchServer

    with BatchServer.find(settings, url=url, key=key) as server:
        yield server


def _first_url(file: Path) -> str:
    """The ``url`` of the first line that is not blank."""
    import json

    with file.open("rb") as lines:
        for line in lines:
            if line.strip():
                try:
                    return str(json.loads(line)["url"])
                except (ValueError, KeyError, TypeError):
                    break
    raise InvalidInput(f"The first line of {file} names no url; give --endpoint, such as /v1/chat/completions.")


def _watched(server: "BatchServer", batch: "BatchStatus") -> "BatchStatus":
    """Waits for a batch's end and shows how far it is, if somebody looks."""
    with _bar() as show:
        while True:
            show(batch)
            if batch.is_over:
                return batch
            time.sleep(_LOOK_S)
            batch = server.status(batch.id)


@contextmanager
def _bar() -> "Iterator[Callable[[BatchStatus], None]]":
    """A progress bar on stderr; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bars:
        task = bars.add_task("validating", total=None, failed="")

        def show(batch: "BatchStatus") -> None:
            done = batch.completed + batch.failed
            failed = f"{batch.failed} failed" if batch.failed else ""
            bars.update(task, description=batch.status, completed=done, total=batch.total or None, failed=failed)

        yield show


def _finish(batch: "BatchStatus", *, as_json: bool) -> None:
    """Shows the batch; raises if its input was refused."""
    if as_json:
        show_json(batch.raw)
    else:
        counts = f"{batch.completed} of {batch.total} answered, {batch.failed} failed" if batch.total else "not begun"
        print(f"{batch.id}: {batch.status}, {counts}")
    if batch.status == "failed":
        for problem in batch.problems[:_SHOWN]:
            print(f"  {problem}", file=sys.stderr)
        raise AxonError(f"{batch.id} failed: its input has {len(batch.problems)} bad lines or more, and nothing ran.")


def _save(server: "BatchServer", file_id: str, path: Path) -> None:
    """Writes a file beside its name and renames it, so that a broken download leaves none."""
    partial = path.with_name(f"{path.name}.partial")
    num_lines = 0
    with server.content(file_id) as pieces, partial.open("wb") as file:
        for piece in pieces:
            num_lines += piece.count(b"\n")
            file.write(piece)
    partial.replace(path)
    print(f"{path}: {num_lines} lines")

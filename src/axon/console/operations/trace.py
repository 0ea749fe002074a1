"""``axon trace``: where the seconds of a turn went, from a server's ledgers and logs; needs no tracing backend."""

import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from axon.console.administration import seconds
from axon.console.flags import ApiKey, ConfigFile, DataDir, Json, Url, load
from axon.errors import Misconfigured

if TYPE_CHECKING:
    from axon.domain.tracing.slowest import Slowest


def trace(
    name: Annotated[
        str | None, typer.Argument(metavar="[REQUEST_ID]", help="Id of a request (x-request-id) or of its answer.")
    ] = None,
    slowest: Annotated[
        int | None, typer.Option("--slowest", min=1, max=100, help="List so many of the slowest turns instead.")
    ] = None,
    since: Annotated[
        str, typer.Option(metavar="TIME", help="How far back the slowest are looked for, at most 7d.")
    ] = "1h",
    url: Url = None,
    key: ApiKey = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Draw the trace of one request, or say what the slowest are made of. The key needs the scope admin.

    \b
    Examples:
      axon trace req_3f2a…
      axon trace chatcmpl-01k…
      axon trace --slowest 20 --since 1d
    """
    if (name is None) == (slowest is None):
        raise Misconfigured("Name a request, as `axon trace REQUEST_ID`, or ask for --slowest 20: one of the two.")
    settings = load({"data_dir": data_dir}, config_file).settings
    from axon.console.operations.trace_view import trace_lines
    from axon.console.server.trace_server import TraceServer

    with TraceServer.find(settings, url=url, key=key) as server:
        if slowest is not None:
            found = server.slowest(most=slowest, since_s=max(1, round(seconds(since, "--since"))))
            _print_json(found) if as_json else _print_slowest(found)
            return
        drawn = server.trace(name or "")
    if as_json:
        _print_json(drawn)
    else:
        from rich.console import Console

        print("\n".join(trace_lines(drawn, Console().width if sys.stdout.isatty() else 120)))


def _print_slowest(found: "Slowest") -> None:
    from axon.console.operations.trace_view import slowest_lines, step_rows, turn_rows
    from axon.console.tables import print_table

    print("\n".join(slowest_lines(found)))
    if found.num_turns:
        print()
        print_table(("step", "share", "of the slowest of a hundred", "there", "median of all"), step_rows(found))
        print()
        columns = ("turn", "took", "longest step", "state", "attempts", "model", "tenant", "request")
        print_table(columns, turn_rows(found))


def _print_json(found: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(found)).decode())

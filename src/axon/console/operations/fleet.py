"""``axon fleet``: the workers that control runs, as its leader last reported them; and one told to drain."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from axon.console.administration import moment, quiet, show_json
from axon.console.flags import ApiKey, ConfigFile, DataDir, Json, Live, Url, load, of_store
from axon.errors import NotFound

if TYPE_CHECKING:
    from axon.domain.fleet.status import FleetStatus

app = typer.Typer(help="Look at the workers that control runs, and drain one.", no_args_is_help=True)

_SHOWN = 10


@app.command()
def status(
    live: Live = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    decisions: Annotated[int, typer.Option(min=0, help="How many of the last decisions to show.")] = _SHOWN,
    as_json: Json = False,
) -> None:
    """Show what control wants to run, what runs, and the last decisions with their reasons.

    \b
    Examples:
      axon fleet status --live redis://…
      axon fleet status --json
    """
    settings = of_store(None, data_dir, config_file, live)
    from axon.bootstrap.administration import read_fleet
    from axon.registry.fleet_facts import NO_REPORT, fleet_facts
    from axon.runtime.clock import SystemClock

    quiet(settings)
    found = asyncio.run(read_fleet(settings))
    if found is None:
        raise NotFound(NO_REPORT)
    now = SystemClock().now()
    if as_json:
        show_json(fleet_facts(found, now=now))
    else:
        _show(found, age_s=max(0.0, now - found.at), num_decisions=decisions)


@app.command()
def drain(
    worker: Annotated[str, typer.Argument(metavar="WORKER", help="The worker's name, as in `axon top`.")],
    url: Url = None,
    key: ApiKey = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Tell a worker to take no more jobs, hand the running ones over and end. The key needs the scope admin.

    \b
    Example:
      axon fleet drain gpu-box-1f3a-0
    """
    settings = load({"data_dir": data_dir}, config_file).settings
    from axon.console.server.fleet_server import FleetServer

    with FleetServer.find(settings, url=url, key=key) as server:
        server.drain(worker)
    print(f"The worker {worker} drains: its jobs are handed over, then it ends.")


def _show(found: "FleetStatus", *, age_s: float, num_decisions: int) -> None:
    from axon.console.tables import print_table

    print(f"Led by {found.leader} (term {found.term}, launcher {found.launcher}), {age_s:.0f} s ago.")
    for word in filter(None, (found.held, found.problem)):
        print(f"Note: {word}.")
    print_table(
        ("group", "wanted", "starting", "ready", "draining", "why"),
        [
            (
                str(each.group),
                *(str(number) for number in (each.wanted, each.starting, each.ready, each.draining)),
                each.reason + (f" ({each.held})" if each.held else ""),
            )
            for each in found.groups
        ],
    )
    if found.replicas:
        print()
        print_table(
            ("replica", "version", "state", "since", "restarts", "zone", "problem"),
            [
                (
                    *(each.name, each.version, str(each.state), str(moment(each.since)), str(each.restarts)),
                    *(each.zone or "-", each.problem or "-"),
                )
                for each in found.replicas
            ],
        )
    if shown := found.decisions[:num_decisions]:
        print()
        print_table(
            ("when", "did", "replica", "why"),
            [
                (
                    str(moment(each.at)),
                    each.action,
                    each.replica,
                    f"{each.reason}{each.error and f' FAILED: {each.error}'}",
                )
                for each in shown
            ],
        )

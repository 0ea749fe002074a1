"""``axon profile``: what a process of a running server computes, allocates and steps through."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axon.console.flags import ApiKey, ConfigFile, DataDir, Json, Url, load

if TYPE_CHECKING:
    from axon.profiling.profile import Kind, Profile

app = typer.Typer(
    help="Profile a process of a running server: its processor time, its memory, an engine's steps.",
    no_args_is_help=True,
)

Process = Annotated[
    str,
    typer.Option(
        "--process",
        metavar="NAME",
        help="A name of `axon profile processes`, its start, a role or a model. [default: the process that answers]",
    ),
]
Engine = Annotated[
    str,
    typer.Option("--process", metavar="NAME", help="The engine: its name or its model. [default: the only one]"),
]
Seconds = Annotated[float, typer.Option("--seconds", min=0.1, max=60.0, help="How long to record.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="File to write; its ending is the format.")]


@app.command()
def cpu(
    process: Process = "",
    seconds: Seconds = 10.0,
    out: Out = None,
    wall: Annotated[bool, typer.Option("--wall", help="Measure all time, waiting included.")] = False,
    url: Url = None,
    key: ApiKey = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Draw a flame graph of where a process spends its processor time.

    The file's ending is its format: .svg is a flame graph, .json is for speedscope.app, .txt has folded stacks.

    \b
    Examples:
      axon profile cpu
      axon profile cpu --process engine --seconds 5 --out engine.svg
      axon profile cpu --wall --out waits.json
    """
    from axon.console.operations.profile_pages import check_folder, cpu_suffix, show_cpu, write_cpu
    from axon.profiling.profile import CpuProfile, Kind
    from axon.profiling.weights import Weight

    out = out or Path("axon-cpu.svg")
    cpu_suffix(out)
    check_folder(out)
    profile = _recorded(Kind.CPU, process, seconds, url, key, data_dir, config_file)
    assert isinstance(profile, CpuProfile)
    weight = Weight.WALL if wall else Weight.CPU
    write_cpu(profile, out, weight)
    show_cpu(profile, out, weight)


@app.command()
def memory(
    process: Process = "",
    seconds: Seconds = 10.0,
    out: Out = None,
    top: Annotated[int, typer.Option(min=1, max=100, help="How many lines to show.")] = 20,
    url: Url = None,
    key: ApiKey = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Show which lines of Python allocated memory that is still held.

    Only allocations made while it records are seen, and none of native libraries. The process is slower meanwhile.

    \b
    Examples:
      axon profile memory --seconds 30
      axon profile memory --process control --out memory.json
    """
    from axon.console.operations.profile_pages import check_folder, show_memory, write_json
    from axon.profiling.profile import Kind, MemoryProfile

    if out is not None:
        check_folder(out)
    profile = _recorded(Kind.MEMORY, process, seconds, url, key, data_dir, config_file)
    assert isinstance(profile, MemoryProfile)
    if out is not None:
        write_json(profile, out)
    show_memory(profile, top)


@app.command()
def steps(
    process: Engine = "",
    seconds: Seconds = 10.0,
    out: Out = None,
    url: Url = None,
    key: ApiKey = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Record the steps of an engine, with the phases of each, for chrome://tracing or ui.perfetto.dev.

    \b
    Examples:
      axon profile steps --seconds 5
      axon profile steps --process llama --out steps.json
    """
    from axon.console.operations.profile_pages import check_folder, show_steps, write_steps
    from axon.profiling.profile import Kind, StepsProfile

    out = out or Path("axon-steps.json")
    check_folder(out)
    profile = _recorded(Kind.STEPS, process or "engine", seconds, url, key, data_dir, config_file)
    assert isinstance(profile, StepsProfile)
    write_steps(profile, out)
    show_steps(profile, out)


@app.command()
def processes(
    url: Url = None, key: ApiKey = None, data_dir: DataDir = None, config_file: ConfigFile = None, as_json: Json = False
) -> None:
    """List the processes that can be profiled.

    \b
    Examples:
      axon profile processes
      axon profile processes --json
    """
    from axon.console.administration import show_json
    from axon.console.server.profile_server import ProfileServer
    from axon.console.tables import print_table

    settings = load({"data_dir": data_dir}, config_file).settings
    with ProfileServer.find(settings, url=url, key=key) as server:
        found = server.processes()
    if as_json:
        show_json(found)
        return
    columns = ("name", "role", "pid", "host", "model")
    print_table(columns, [[str(each.get(column) or "-") for column in columns] for each in found])


def _recorded(
    kind: "Kind",
    process: str,
    seconds: float,
    url: str | None,
    key: str | None,
    data_dir: Path | None,
    config_file: Path | None,
) -> "Profile":
    """Asks the server for the profile, with a bar meanwhile."""
    from axon.console.operations.profile_pages import waited_for
    from axon.console.server.profile_server import ProfileServer

    settings = load({"data_dir": data_dir}, config_file).settings
    with ProfileServer.find(settings, url=url, key=key) as server:
        return waited_for(lambda: server.profile(kind, process, seconds), seconds)

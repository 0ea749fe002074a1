"""The command line: commands, flags, exit codes. Does nothing itself: each command imports what it needs to run."""

import json
import sys
import traceback
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, NoReturn

import typer

from axon.console import batch
from axon.console.backup import backup
from axon.console.flags import ApiKey, ConfigFile, DataDir, Json, Set, Url, load
from axon.console.models import aliases, deployments, models, prices, rollouts
from axon.console.operations import fleet, monitoring, profile, size, trace
from axon.console.serving import roles
from axon.console.tenants import audit, keys, plans, tenants, usage
from axon.console.top.command import top
from axon.errors import AxonError, InvalidInput, Misconfigured
from axon.runtime.printable import on_terminal

app = typer.Typer(
    name="axon",
    help="Serve large language models to many tenants.",
    epilog="Start with: axon serve",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
config = typer.Typer(help="Look at the settings.", no_args_is_help=True)
for _name, _commands in (
    *(("tenants", tenants), ("plans", plans), ("keys", keys)),
    *(
        ("models", models),
        ("deployments", deployments),
        ("rollouts", rollouts),
        ("aliases", aliases),
        ("prices", prices),
        ("fleet", fleet),
        ("batch", batch),
        ("profile", profile),
        ("backup", backup),
    ),
):
    app.add_typer(_commands.app, name=_name)
app.add_typer(config, name="config")
for _role in roles.COMMANDS:
    app.command()(_role)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        version()
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", help="Say which Axon this is.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Serve large language models to many tenants."""


@app.command()
def chat(
    url: Url = None,
    key: ApiKey = None,
    model: Annotated[str | None, typer.Option(help="Model to talk to. [default: the server's first]")] = None,
    system: Annotated[str | None, typer.Option(help="What the model is told before you speak.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Longest answer, in tokens. [default: 1024, or what there is room for]")
    ] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, max=2.0, help="0 always gives the same answer.")] = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Talk to a running server in the terminal.

    ctrl-c stops an answer, ctrl-d leaves. Lines from a pipe are asked one after the other.

    \b
    Examples:
      axon chat
      axon chat --url http://gpu-box:8000 --key axk_... --system "Answer in French."
      echo "What is the capital of France?" | axon chat --temperature 0
    """
    settings = load({"data_dir": data_dir}, config_file).settings
    from axon.console.chat import Conversation, talk
    from axon.console.server.server import Server

    with Server.find(settings, url=url, key=key) as server:
        conversation = Conversation(system=system, max_tokens=max_tokens, temperature=temperature)
        raise typer.Exit(talk(server, conversation, model=model, history_file=settings.data_dir / "chat-history"))


app.command()(usage.usage)
app.command()(audit.audit)
app.command()(top)
app.command()(trace.trace)
app.command()(rollouts.rollback)
app.command()(monitoring.monitoring)
app.command()(size.size)


@config.command("show")
def config_show(
    describe: Annotated[bool, typer.Option("--describe", help="What each setting means, with its default.")] = False,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Show the effective settings and where each came from; secrets are hidden.

    \b
    Examples:
      axon config show
      AXON_GATEWAY_PORT=9000 axon config show --json
      axon config show --describe
    """
    loaded = load({"data_dir": data_dir}, config_file, set_)
    from axon.console.config import show, show_described

    show_described(as_json=as_json) if describe else show(loaded, as_json=as_json)


@app.command()
def version(as_json: Json = False) -> None:
    """Say which Axon this is.

    \b
    Example:
      axon version
    """
    import platform

    from axon.telemetry.build import version as installed

    if as_json:
        typer.echo(json.dumps({"axon": installed(), "python": platform.python_version()}))
    else:
        typer.echo(f"axon {installed()} (Python {platform.python_version()})")


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Runs a command. Errors are one line that says what to do; 2 for misuse, 1 for failures."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        sys.exit(app(arguments, prog_name="axon", standalone_mode=False) or 0)
    except typer.TyperException as error:
        _say_misuse(error)
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(1)
    except AxonError as error:
        _say(error, error.message, arguments)
        sys.exit(2 if isinstance(error, Misconfigured | InvalidInput) else 1)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        _say(error, f"{error.strerror or error}{place}", arguments)
        sys.exit(1)
    except Exception as error:
        causes = "; ".join(f"{type(each).__name__}: {each}" for each in _causes(error))
        _say(error, f"{causes}. Run it again with AXON_LOG_LEVEL=debug to see where.", arguments)
        sys.exit(1)


def _causes(error: BaseException) -> list[BaseException]:
    """The errors in a group of them, or the error itself: a group's own words do not tell what happened."""
    if isinstance(error, BaseExceptionGroup):
        return [cause for each in error.exceptions for cause in _causes(each)]
    return [error]


def _say_misuse(error: typer.TyperException) -> None:
    """One line with the flag and what it takes; a group of commands without one has shown its help instead."""
    said = " ".join(error.format_message().split())
    command = getattr(getattr(error, "ctx", None), "command_path", "axon")
    if said:
        end = "" if said.endswith((".", "?")) else "."
        print(f"axon: {said}{end} See `{command} --help`.", file=sys.stderr)


def _say(error: BaseException, message: str, arguments: Sequence[str]) -> None:
    from axon.settings import client_variable

    flagged = "--log-level=debug" in arguments or ("--log-level", "debug") in pairwise(arguments)
    if flagged or client_variable("AXON_LOG_LEVEL") == "debug":
        traceback.print_exception(error)
    print(f"axon: {on_terminal(message, keeps_lines=True)}", file=sys.stderr)


if __name__ == "__main__":
    main()

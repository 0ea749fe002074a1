"""The command line: commands, flags, exit codes. Does nothing itself: each command imports what it needs to run."""

import json
import sys
import traceback
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from axon.errors import AxonError, Misconfigured

if TYPE_CHECKING:
    from axon.settings import Loaded

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
keys = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)
models = typer.Typer(help="Look at the models.", no_args_is_help=True)
config = typer.Typer(help="Look at the settings.", no_args_is_help=True)
app.add_typer(keys, name="keys")
app.add_typer(models, name="models")
app.add_typer(config, name="config")


class Engine(StrEnum):
    AXON = "axon"
    ECHO = "echo"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


ConfigFile = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="Settings file (TOML).")]
DataDir = Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help="Folder of everything that is kept.")]
Level = Annotated[LogLevel | None, typer.Option("--log-level", help="The least severe level that is written.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting by its name, such as engine.threads=2. Repeatable."),
]
Url = Annotated[str | None, typer.Option("--url", help="The server's address. [default: AXON_URL, else the settings']")]
ApiKey = Annotated[str | None, typer.Option("--key", help="API key. [default: AXON_API_KEY, else the development key]")]
Store = Annotated[str | None, typer.Option("--store", metavar="URL", help="Durable records.")]
Queue = Annotated[str | None, typer.Option("--queue", metavar="URL", help="Queue of jobs.")]
Live = Annotated[str | None, typer.Option("--live", metavar="URL", help="What is fast and expiring.")]
Host = Annotated[str | None, typer.Option("--host", help="Address to listen on.")]
Port = Annotated[int | None, typer.Option("--port", help="Port of the API; 0 takes a free one.")]
MetricsPort = Annotated[
    int | None, typer.Option("--metrics-port", help="Port of /metrics and the probes; 0 takes a free one.")
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="PATH", help="A safetensors folder or .gguf file, or 'default'."),
]
ModelName = Annotated[str | None, typer.Option("--model-name", help="The name clients ask for the model by.")]
EngineKind = Annotated[Engine | None, typer.Option("--engine", help="'echo' repeats its prompt without a model.")]
TensorParallel = Annotated[int | None, typer.Option("--tensor-parallel", min=1, help="Ranks the model is cut over.")]
Json = Annotated[bool, typer.Option("--json", help="For machines.")]


@app.command()
def serve(
    host: Host = None,
    port: Port = None,
    metrics_port: MetricsPort = None,
    model: Model = None,
    model_name: ModelName = None,
    engine: EngineKind = None,
    tensor_parallel: TensorParallel = None,
    queue: Queue = None,
    live: Live = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    log_level: Level = None,
    set_: Set = None,
) -> None:
    """Serve a model: gateway, worker and control in one process.

    \b
    Examples:
      axon serve
      axon serve --port 9000 --model ~/models/Qwen3-0.6B
      axon serve --engine echo --set engine.echo_step_s=0.05
    """
    loaded = _load(
        {
            **_place(queue, live, store, data_dir, log_level),
            **_model(model, model_name, engine),
            "engine.tensor_parallel": tensor_parallel,
            "gateway.host": host,
            "gateway.port": port,
            "gateway.metrics_port": metrics_port,
        },
        config_file,
        set_,
    )
    from axon.console.serving import serve_until_stopped

    raise typer.Exit(serve_until_stopped(loaded.settings))


@app.command()
def gateway(
    host: Host = None,
    port: Port = None,
    metrics_port: MetricsPort = None,
    model: Model = None,
    model_name: ModelName = None,
    engine: EngineKind = None,
    queue: Queue = None,
    live: Live = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    log_level: Level = None,
    set_: Set = None,
) -> None:
    """Take requests for a fleet: HTTP in, tokens out.

    Needs the model's tokenizer and template, no weights and no torch. Every gateway of a fleet needs the same
    AXON_PEPPER, or the same data folder. Not ready until the first worker is there.

    \b
    Example:
      axon gateway --port 8000 --queue amqp://… --live redis://… --store postgresql://…
    """
    loaded = _load(
        {
            **_place(queue, live, store, data_dir, log_level),
            **_model(model, model_name, engine),
            "gateway.host": host,
            "gateway.port": port,
            "gateway.metrics_port": metrics_port,
        },
        config_file,
        set_,
    )
    from axon.console.serving import serve_until_stopped

    raise typer.Exit(serve_until_stopped(loaded.settings, "gateway"))


@app.command()
def worker(
    name: Annotated[
        str | None, typer.Option(help="Its name in the fleet. [default: from the host and the data folder]")
    ] = None,
    metrics_port: MetricsPort = None,
    model: Model = None,
    model_name: ModelName = None,
    engine: EngineKind = None,
    tensor_parallel: TensorParallel = None,
    queue: Queue = None,
    live: Live = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    log_level: Level = None,
    set_: Set = None,
) -> None:
    """Run a model for a fleet: jobs off the queue, tokens into the log.

    \b
    Examples:
      axon worker --queue amqp://… --live redis://… --store postgresql://…
      axon worker --name gpu-7 --model /models/Qwen3-0.6B --queue amqp://… --live redis://… --store postgresql://…
    """
    loaded = _load(
        {
            **_place(queue, live, store, data_dir, log_level),
            **_model(model, model_name, engine),
            "engine.tensor_parallel": tensor_parallel,
            "worker.name": name,
            "worker.metrics_port": metrics_port,
        },
        config_file,
        set_,
    )
    from axon.console.serving import serve_until_stopped

    raise typer.Exit(serve_until_stopped(loaded.settings, "worker"))


@app.command()
def control(
    metrics_port: MetricsPort = None,
    queue: Queue = None,
    live: Live = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    log_level: Level = None,
    set_: Set = None,
) -> None:
    """Look after a fleet: carry the journal into the store, adopt what nobody runs, forget what is past its time.

    Start two: one leads, the other takes over when it dies.

    \b
    Example:
      axon control --queue amqp://… --live redis://… --store postgresql://…
    """
    loaded = _load(
        {**_place(queue, live, store, data_dir, log_level), "control.metrics_port": metrics_port}, config_file, set_
    )
    from axon.console.serving import serve_until_stopped

    raise typer.Exit(serve_until_stopped(loaded.settings, "control"))


@app.command()
def rank(
    rendezvous: Annotated[str, typer.Argument(metavar="ADDRESS", help="Where the leading rank is: tcp://HOST:PORT.")],
    count: Annotated[int, typer.Option(min=1, help="Ranks on this host, each with a GPU of its own.")] = 1,
    model: Annotated[str | None, typer.Option(metavar="PATH", help="Where this host has the model.")] = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    log_level: Level = None,
    set_: Set = None,
) -> None:
    """Be ranks of a model that is cut over several hosts, again and again, until stopped.

    The leading rank is an engine with the same model and engine.rendezvous set to this address.

    \b
    Examples:
      axon rank tcp://gpu-0:29500 --model /models/Llama-3-70B
      axon rank tcp://gpu-0:29500 --count 8
    """
    loaded = _load(
        {"model": model, "data_dir": data_dir, "log.level": log_level and log_level.value}, config_file, set_
    )
    from axon.console.ranks import serve_until_stopped

    raise typer.Exit(serve_until_stopped(loaded.settings, rendezvous, count))


@app.command()
def chat(
    url: Url = None,
    key: ApiKey = None,
    model: Annotated[str | None, typer.Option(help="Model to talk to. [default: the server's first]")] = None,
    system: Annotated[str | None, typer.Option(help="What the model is told before you speak.")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer, in tokens.")] = 1024,
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
    settings = _load({"data_dir": data_dir}, config_file).settings
    from axon.console.chat import Conversation, talk
    from axon.console.server import Server

    with Server.find(settings, url=url, key=key) as server:
        conversation = Conversation(system=system, max_tokens=max_tokens, temperature=temperature)
        raise typer.Exit(talk(server, conversation, model=model, history_file=settings.data_dir / "chat-history"))


@keys.command("create")
def keys_create(
    tenant: Annotated[str, typer.Option(help="Who is billed and isolated.")] = "default",
    name: Annotated[str, typer.Option(help="A reminder of what the key is for.")] = "",
    expires_in_days: Annotated[
        float | None, typer.Option(min=0.0, max=36500.0, help="At most a hundred years. [default: never]")
    ] = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Make an API key and show it, this once.

    \b
    Examples:
      axon keys create --tenant acme --name laptop
      export AXON_API_KEY=$(axon keys create --tenant acme)
    """
    settings = _load({"store": store, "data_dir": data_dir}, config_file).settings
    from axon.console.keys import create

    create(settings, tenant=tenant, name=name, expires_in_days=expires_in_days, as_json=as_json)


@keys.command("list")
def keys_list(
    store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None, as_json: Json = False
) -> None:
    """List the API keys, without their secrets.

    \b
    Examples:
      axon keys list
      axon keys list --json | jq -r '.[].id'
    """
    settings = _load({"store": store, "data_dir": data_dir}, config_file).settings
    from axon.console.keys import show

    show(settings, as_json=as_json)


@keys.command("revoke")
def keys_revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as in `axon keys list`.")],
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Revoke an API key for good.

    \b
    Example:
      axon keys revoke 3f9c2k7q
    """
    settings = _load({"store": store, "data_dir": data_dir}, config_file).settings
    from axon.console.keys import revoke

    revoke(settings, key_id)


@models.command("list")
def models_list(
    url: Url = None,
    key: ApiKey = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """List the running server's models; with no server, those in the models folder.

    \b
    Examples:
      axon models list
      axon models list --url http://gpu-box:8000 --json
    """
    settings = _load({"data_dir": data_dir}, config_file).settings
    from axon.console.models import show

    show(settings, url=url, key=key, as_json=as_json)


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
    loaded = _load({"data_dir": data_dir}, config_file, set_)
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
        app(arguments, prog_name="axon")
    except AxonError as error:
        _say(error, error.message, arguments)
        sys.exit(2 if isinstance(error, Misconfigured) else 1)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        _say(error, f"{error.strerror or error}{place}", arguments)
        sys.exit(1)
    except Exception as error:
        _say(error, f"{type(error).__name__}: {error}. Run it again with AXON_LOG_LEVEL=debug to see where.", arguments)
        sys.exit(1)
    sys.exit(0)


def _say(error: BaseException, message: str, arguments: Sequence[str]) -> None:
    from axon.settings import client_variable

    flagged = "--log-level=debug" in arguments or ("--log-level", "debug") in pairwise(arguments)
    if flagged or client_variable("AXON_LOG_LEVEL") == "debug":
        traceback.print_exception(error)
    print(f"axon: {message}", file=sys.stderr)


def _place(
    queue: str | None, live: str | None, store: str | None, data_dir: Path | None, log_level: LogLevel | None
) -> dict[str, object]:
    """What every process is told."""
    return {
        "queue": queue,
        "live": live,
        "store": store,
        "data_dir": data_dir,
        "log.level": log_level and log_level.value,
    }


def _model(model: str | None, model_name: str | None, engine: Engine | None) -> dict[str, object]:
    return {"model": model, "model_name": model_name, "engine.kind": engine and engine.value}


def _load(flags: dict[str, object], file: Path | None, assignments: Sequence[str] | None = None) -> "Loaded":
    from axon.settings import load

    return load({**flags, **_assigned(assignments or ())}, file=file)


def _assigned(assignments: Sequence[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for each in assignments:
        name, equals, value = each.partition("=")
        if not equals:
            raise Misconfigured(f"--set {each}: write NAME=VALUE, such as --set engine.threads=2.")
        values[name.strip()] = value
    return values


if __name__ == "__main__":
    main()

"""The commands that run until they are stopped: everything in one process, each role by itself, and ranks."""

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from axon.console.flags import (
    Compat,
    ConfigFile,
    DataDir,
    EngineKind,
    Host,
    Level,
    Live,
    MetricsCompat,
    MetricsPort,
    Model,
    ModelName,
    Models,
    Open,
    Port,
    Processes,
    Queue,
    Set,
    Store,
    TensorParallel,
    common_flags,
    load,
    of_model,
    of_models,
)

if TYPE_CHECKING:
    from axon.console.serving.screen import Role
    from axon.settings import Loaded


def serve(
    host: Host = None,
    port: Port = None,
    metrics_port: MetricsPort = None,
    metrics_compat: MetricsCompat = None,
    processes: Processes = None,
    open_: Open = False,
    model: Models = None,
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
    """Serve a model, or several: gateway, workers and control in one process.

    \b
    Examples:
      axon serve
      axon serve --open
      axon serve --port 9000 --model ~/models/Qwen3-0.6B
      axon serve --model small=default --model qwen=~/models/Qwen3-0.6B
      axon serve --engine echo --set engine.echo_step_s=0.05
    """
    loaded = load(
        {
            **common_flags(queue, live, store, data_dir, log_level),
            **of_models(model, model_name, engine),
            "engine.tensor_parallel": tensor_parallel,
            **_listening(host, port, metrics_port, metrics_compat, processes),
        },
        config_file,
        set_,
    )
    _serve(loaded, opens_page=open_)


def gateway(
    host: Host = None,
    port: Port = None,
    metrics_port: MetricsPort = None,
    metrics_compat: MetricsCompat = None,
    processes: Processes = None,
    model: Models = None,
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
    Examples:
      axon gateway --port 8000 --queue amqp://… --live redis://… --store postgresql://…
      axon gateway --processes 4 --queue amqp://… --live redis://… --store postgresql://…
    """
    loaded = load(
        {
            **common_flags(queue, live, store, data_dir, log_level),
            **of_models(model, model_name, engine),
            **_listening(host, port, metrics_port, metrics_compat, processes),
        },
        config_file,
        set_,
    )
    _serve(loaded, "gateway")


def worker(
    name: Annotated[
        str | None, typer.Option(help="Its name in the fleet. [default: from the host and the data folder]")
    ] = None,
    pool: Annotated[
        str | None, typer.Option(help="Works for the tenants of this pool alone; without it, for those of none.")
    ] = None,
    deployment: Annotated[
        str | None, typer.Option(help="A registered deployment that it serves, in place of --model.")
    ] = None,
    version: Annotated[
        str | None, typer.Option(help="The label of the version. [default: the one that needs a worker most]")
    ] = None,
    metrics_port: MetricsPort = None,
    metrics_compat: MetricsCompat = None,
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
      axon worker --pool gold --queue amqp://… --live redis://… --store postgresql://…
      axon worker --deployment small --queue amqp://… --live redis://… --store postgresql://…
      axon worker --name gpu-7 --model /models/Qwen3-0.6B --queue amqp://… --live redis://… --store postgresql://…
    """
    loaded = load(
        {
            **common_flags(queue, live, store, data_dir, log_level),
            **of_model(model, model_name, engine),
            "engine.tensor_parallel": tensor_parallel,
            "worker.name": name,
            "worker.pool": pool,
            "worker.deployment": deployment,
            "worker.version": version,
            "worker.metrics_port": metrics_port,
            "metrics.compat": metrics_compat and metrics_compat.value,
        },
        config_file,
        set_,
    )
    _serve(loaded, "worker")


def control(
    metrics_port: MetricsPort = None,
    metrics_compat: MetricsCompat = None,
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
    loaded = load(
        {
            **common_flags(queue, live, store, data_dir, log_level),
            "control.metrics_port": metrics_port,
            "metrics.compat": metrics_compat and metrics_compat.value,
        },
        config_file,
        set_,
    )
    _serve(loaded, "control")


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
    loaded = load({"model": model, "data_dir": data_dir, "log.level": log_level and log_level.value}, config_file, set_)
    from axon.console.serving.ranks import serve_until_stopped

    raise typer.Exit(serve_until_stopped(loaded.settings, rendezvous, count))


def _listening(
    host: str | None, port: int | None, metrics_port: int | None, compat: Compat | None, processes: int | None
) -> dict[str, object]:
    """Settings of the flags of a process that takes requests."""
    return {
        "gateway.host": host,
        "gateway.port": port,
        "gateway.metrics_port": metrics_port,
        "metrics.compat": compat and compat.value,
        "gateway.processes": processes,
    }


def _serve(loaded: "Loaded", role: "Role" = "serve", *, opens_page: bool = False) -> NoReturn:
    """Runs until it is stopped, and ends the command with the exit code."""
    from axon.console.serving.screen import serve_until_stopped

    raise typer.Exit(serve_until_stopped(loaded.settings, role, opens_page=opens_page))


COMMANDS = (serve, gateway, worker, control, rank)

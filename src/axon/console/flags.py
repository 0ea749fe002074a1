"""Flags that several commands share, and the settings that they give."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axon.errors import Misconfigured
from axon.model_settings import is_entry

if TYPE_CHECKING:
    from axon.settings import Loaded, Settings


class Engine(StrEnum):
    AXON = "axon"
    ECHO = "echo"


class Compat(StrEnum):
    NONE = "none"
    VLLM = "vllm"


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
MetricsCompat = Annotated[
    Compat | None, typer.Option("--metrics-compat", help="Shows these names on /metrics too, beside Axon's own.")
]
Processes = Annotated[
    int | None,
    typer.Option("--processes", min=1, help="Processes that serve the port. [default: 1 below 8 cores, else up to 4]"),
]
Open = Annotated[bool, typer.Option("--open", help="Show the chat in the browser of this machine.")]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="PATH", help="A safetensors folder, a .gguf file, a name in the models folder."),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        metavar="[NAME=]SOURCE",
        help="A safetensors folder, a .gguf file, a name in the models folder. Repeatable, each with a NAME then.",
    ),
]
ModelName = Annotated[str | None, typer.Option("--model-name", help="The name clients ask for the model by.")]
EngineKind = Annotated[Engine | None, typer.Option("--engine", help="'echo' repeats its prompt without a model.")]
TensorParallel = Annotated[int | None, typer.Option("--tensor-parallel", min=1, help="Ranks the model is cut over.")]
Json = Annotated[bool, typer.Option("--json", help="For machines.")]

_FLAG_OF = {
    "data_dir": "--data-dir",
    "engine.kind": "--engine",
    "engine.tensor_parallel": "--tensor-parallel",
    "gateway.host": "--host",
    "gateway.port": "--port",
    "gateway.processes": "--processes",
    "live": "--live",
    "log.level": "--log-level",
    "metrics.compat": "--metrics-compat",
    "model": "--model",
    "model_name": "--model-name",
    "models": "--model",
    "queue": "--queue",
    "store": "--store",
    "worker.deployment": "--deployment",
    "worker.name": "--name",
    "worker.pool": "--pool",
    "worker.version": "--version",
    **{f"{role}.metrics_port": "--metrics-port" for role in ("gateway", "worker", "control")},
}
"""The flag that sets a setting, so that an error names what was typed."""


def common_flags(
    queue: str | None, live: str | None, store: str | None, data_dir: Path | None, log_level: LogLevel | None
) -> dict[str, object]:
    """Settings of the flags that every process has."""
    return {
        "queue": queue,
        "live": live,
        "store": store,
        "data_dir": data_dir,
        "log.level": log_level and log_level.value,
    }


def of_model(model: str | None, model_name: str | None, engine: Engine | None) -> dict[str, object]:
    """Settings of the flags of a process that reads a model."""
    return {"model": model, "model_name": model_name, "engine.kind": engine and engine.value}


def of_models(models: Sequence[str] | None, model_name: str | None, engine: Engine | None) -> dict[str, object]:
    """Settings of the flags of a process that may serve several models."""
    if not models or (len(models) == 1 and not is_entry(models[0])):
        return of_model(models[0] if models else None, model_name, engine)
    if model_name is not None:
        raise Misconfigured("--model-name names a single model; with several, each is written --model NAME=SOURCE.")
    return {"models": ",".join(models), "engine.kind": engine and engine.value}


def of_store(store: str | None, data_dir: Path | None, file: Path | None, live: str | None = None) -> "Settings":
    """The settings of a command that works on the store, without a server."""
    return load({"store": store, "data_dir": data_dir, "live": live}, file).settings


def load(flags: dict[str, object], file: Path | None, assignments: Sequence[str] | None = None) -> "Loaded":
    """The settings of a command with these flags."""
    from axon.settings import load as load_settings

    assigned = _assigned(assignments or ())
    spelled = _FLAG_OF | {name: f"--set {name}" for name in assigned}
    given = {name for name, value in {**flags, **assigned}.items() if value is not None}
    return load_settings(
        {**flags, **assigned}, file=file, spelled={name: spelled[name] for name in given if name in spelled}
    )


def _assigned(assignments: Sequence[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for each in assignments:
        name, equals, value = each.partition("=")
        if not equals:
            raise Misconfigured(f"--set {each}: write NAME=VALUE, such as --set engine.threads=2.")
        values[name.strip()] = value
    return values

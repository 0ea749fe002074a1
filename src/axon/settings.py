"""All settings, and the source of each value. The only file that reads the environment.

    flags  >  environment (AXON_GATEWAY_PORT)  >  TOML file ([gateway] port)  >  defaults

Each package owns its section; this file combines them and does not interpret them.
"""

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_type_hints

from axon.admission.config import AdmissionConfig
from axon.control.config import ControlConfig
from axon.dispatch.config import DispatchConfig
from axon.engine.config import EngineConfig
from axon.errors import Misconfigured
from axon.gateway.batches.config import BatchesConfig
from axon.gateway.config import GatewayConfig
from axon.gateway.grpc.config import GrpcConfig
from axon.model_settings import model_entries, table_text
from axon.runtime.config import LifecycleConfig
from axon.runtime.field_docs import default_text, field_docs, type_text
from axon.sessions.config import SessionsConfig
from axon.setting_value import Spec, accept, hide, parse, suggest
from axon.settings_checks import check_together
from axon.settings_files import URLS, displaced, read_url_files
from axon.telemetry.config import AlertsConfig, LogConfig, MetricsConfig, TracesConfig
from axon.weights.config import WeightsConfig
from axon.worker.config import WorkerConfig

_DEFAULT_FILE = "axon.toml"
# Read by the command line rather than kept in the settings.
_CLIENT_VARIABLES = ("AXON_CONFIG", "AXON_API_KEY", "AXON_URL")
_RENDEZVOUS_PORT = 29500
"""Where the ranks of a LeaderWorkerSet's group meet, on the host that leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One process's settings. Empty values are derived from the others when the object is created."""

    data_dir: Path = field(
        default_factory=lambda: _default_data_dir(os.environ),
        metadata={"default": "$XDG_DATA_HOME/axon, else ~/.local/share/axon"},
    )
    """Folder of all persistent files: the database, keys, converted models."""
    models_dir: Path | None = field(default=None, metadata={"default": "<data_dir>/models"})
    """Folder of the models: those named by ``model``, and what .gguf files are converted into."""
    model: str = "default"
    """``default`` is the packaged SmolLM2-135M-Instruct; else the path of a safetensors folder or a .gguf file, or the
    name of one in ``models_dir``."""
    model_name: str = field(default="", metadata={"default": "from the model"})
    """Model name that clients use."""
    models: str = ""
    """Several models in one server, in place of ``model``: ``NAME=SOURCE`` for each, with commas between them. Settings
    of ``[engine]`` for one model alone follow its source: ``NAME=SOURCE;dtype=int8``. In a file, a model is a table
    ``[models.NAME]`` with ``source`` and such settings."""
    queue: str = field(default="memory://", repr=False, metadata={"url": True})
    """URL of the queue of jobs."""
    queue_file: Path | None = None
    """File with the URL of the queue, in place of ``queue``: it is read again for every new connection, so that a
    password may be rotated while the process runs."""
    live: str = field(default="memory://", repr=False, metadata={"url": True})
    """URL of the live service, for fast, expiring state: token logs, leases, accounts."""
    live_file: Path | None = None
    """File with the URL of the live service, in place of ``live``; user and password are read again for every new
    connection."""
    namespace: str = "axon"
    """Prefix of the queues and keys in shared services; two Axons on one broker need two."""
    store: str = field(default="", repr=False, metadata={"url": True, "default": "sqlite:///<data_dir>/axon.db"})
    """URL of the store, for durable records."""
    store_file: Path | None = None
    """File with the URL of the store, in place of ``store``: it is read again for every new connection."""
    service_ca_file: Path | None = field(default=None, metadata={"default": "the CAs that the system trusts"})
    """File with the certificates (PEM) of the CAs that may vouch for RabbitMQ, Redis and PostgreSQL over TLS; only
    these are trusted then. With it, PostgreSQL must use TLS and have the right name (``verify-full``), unless its URL
    has another ``sslmode``; for the others ``amqps://`` and ``rediss://`` say so."""
    service_timeout_s: float = 2.0
    """Seconds within which RabbitMQ, Redis and PostgreSQL must answer a call; a service that does not counts as down,
    and requests that need it get 503."""
    zone: str = ""
    """Zone that the process runs in, such as ``eu-central-1a``: new conversations begin at workers of their gateway's
    zone while these have free slots. Empty where there is one zone."""
    failpoints: str = ""
    """Faults to inject, for tests only."""
    pepper: str = field(default="", repr=False, metadata={"secret": True, "default": "made once in the data folder"})
    """Secret that keys are hashed with; the same for all gateways of a fleet."""

    gateway: GatewayConfig = field(default_factory=GatewayConfig)
    grpc: GrpcConfig = field(default_factory=GrpcConfig)
    admission: AdmissionConfig = field(default_factory=AdmissionConfig)
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    batches: BatchesConfig = field(default_factory=BatchesConfig)
    dispatch: DispatchConfig = field(default_factory=DispatchConfig)
    worker: WorkerConfig = field(default_factory=WorkerConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    weights: WeightsConfig = field(default_factory=WeightsConfig)
    control: ControlConfig = field(default_factory=ControlConfig)
    lifecycle: LifecycleConfig = field(default_factory=LifecycleConfig)
    log: LogConfig = field(default_factory=LogConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    alerts: AlertsConfig = field(default_factory=AlertsConfig)
    traces: TracesConfig = field(default_factory=TracesConfig)

    origins: dict[str, str] = field(default_factory=dict, repr=False, compare=False, metadata={"is_setting": False})
    """The source of each value by dotted name, such as ``flag`` or a file; no setting itself."""

    def __post_init__(self) -> None:
        derived: dict[str, Any] = {
            "models_dir": self.models_dir or self.data_dir / "models",
            "model": os.path.expanduser(self.model),
            "model_name": self.model_name or _name_of(self.model, self.engine.kind),
            "store": self.store or f"sqlite:///{self.data_dir / 'axon.db'}",
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def each_model(self) -> "tuple[Settings, ...]":
        """The settings of each model that is to be served, as if it were the only one; they divide a GPU's memory."""
        entries = model_entries(self.models)
        fraction = self.engine.gpu_memory_fraction / max(1, len(entries))
        shared = replace(self.engine, gpu_memory_fraction=fraction)
        found = tuple(
            replace(
                with_engine(replace(self, engine=shared), entry.engine, f"the model {entry.name}"),
                models="",
                model=entry.source,
                model_name=entry.name,
            )
            for entry in entries
        )
        return found or (self,)


def with_engine(settings: Settings, own: Iterable[tuple[str, str]], whose: str) -> Settings:
    """The settings with some of the engine's in place of the shared ones, each a name and its value as text; raises
    ``Misconfigured`` for a name or value that is wrong. ``whose`` they are stands in its sentence."""
    values: dict[str, Any] = {}
    for name, text in own:
        if f"engine.{name}" not in _specs():
            known = [each.name for each in fields(EngineConfig)]
            raise Misconfigured(f"{name} of {whose} is no setting of an engine.{suggest(name, known)}")
        values[name] = parse(_specs()[f"engine.{name}"], text, f"{name} of {whose}")
    return replace(settings, engine=replace(settings.engine, **values))


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and the source of each value by dotted name."""

    settings: Settings
    origins: dict[str, str]

    def shown(self) -> dict[str, object]:
        """Every value by its dotted name, secrets hidden."""
        return {name: _show(self.settings, spec, name) for name, spec in _specs().items()}


def in_effect(settings: Settings) -> dict[str, tuple[object, str]]:
    """Every value by its dotted name with where it comes from, secrets hidden."""
    return {
        name: (_show(settings, spec, name), settings.origins.get(name, "default")) for name, spec in _specs().items()
    }


class Described(NamedTuple):
    """A setting for its readers."""

    name: str
    type: str
    default: str
    doc: str
    variable: str


def load(
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
    spelled: Mapping[str, str] | None = None,
) -> Loaded:
    """The effective settings. ``flags`` go by dotted names (``gateway.port``); those that are None were not given.

    ``spelled`` has the flags as they were written (``--port``), so that an error can name them.
    """
    spelled = spelled or {}
    environ = os.environ if environ is None else environ
    values: dict[str, object] = {"data_dir": _default_data_dir(environ)}
    origins = dict.fromkeys(_specs(), "default")
    sources: tuple[tuple[dict[str, object], Callable[[str], str]], ...] = (
        (_from_group(environ), lambda _: "LeaderWorkerSet"),
        (_from_file(path := _find_file(file, environ)), lambda _: str(path)),
        (_from_environ(environ), variable_of),
        (_from_flags(flags or {}, spelled), lambda _: "flag"),
    )
    for layer, origin in sources:
        for name in displaced(layer, origin):
            values.pop(name, None)
            origins[name] = "default"
        values |= layer
        origins |= {name: origin(name) for name in layer}
    in_files = read_url_files(values)
    origins |= {name: f"{name}_file" for name in in_files}
    settings = _build({**values, **in_files})
    check_together(settings.worker, settings.gateway, settings.lifecycle, spelled)
    settings.each_model()  # raises what is wrong with them
    return Loaded(replace(settings, origins=origins), origins)


def client_variable(name: Literal["AXON_API_KEY", "AXON_URL", "AXON_LOG_LEVEL"]) -> str | None:
    """An environment variable that only the command line reads; None when unset or empty."""
    return os.environ.get(name) or None


def environment_of(settings: Settings) -> dict[str, str]:
    """The environment of another process that shall have these settings: every one of them, and what this process has
    besides. Faults that are injected here are not injected there."""
    shown = {name: _value(replace(settings, failpoints=""), name) for name in _specs()}
    in_files = {name for name in URLS if shown[f"{name}_file"] is not None}
    own = {
        variable_of(name): _text(value) for name, value in shown.items() if value is not None and name not in in_files
    }
    return {name: text for name, text in os.environ.items() if not name.startswith("AXON_")} | own


def describe() -> list[Described]:
    """Every setting with its type, default and sentence, in the order of the code."""
    return [
        Described(
            name,
            type_text(spec.hint),
            default_text(spec.field),
            field_docs(spec.owner)[spec.field.name],
            variable_of(name),
        )
        for name, spec in _specs().items()
    ]


def variable_of(name: str) -> str:
    """The environment variable of a dotted name."""
    return "AXON_" + name.replace(".", "_").upper()


@cache
def _specs() -> dict[str, Spec]:
    return dict(_walk(Settings, ""))


def _walk(owner: type, prefix: str) -> Iterable[tuple[str, Spec]]:
    hints = get_type_hints(owner)
    for each in fields(owner):
        if not each.metadata.get("is_setting", True):
            continue
        if is_dataclass(hints[each.name]):
            yield from _walk(hints[each.name], f"{each.name}.")
        else:
            name = prefix + each.name
            yield name, Spec(name, hints[each.name], each, owner)


def _from_group(environ: Mapping[str, str]) -> dict[str, object]:
    """What LeaderWorkerSet tells a pod of the group that it is in; nothing outside of one, or in one of one pod."""
    size, address, index = (environ.get(f"LWS_{word}", "") for word in ("GROUP_SIZE", "LEADER_ADDRESS", "WORKER_INDEX"))
    if not address or not size.isdigit() or int(size) < 2:
        return {}
    return {
        "engine.hosts": int(size),
        "engine.rendezvous": f"tcp://{address}:{_RENDEZVOUS_PORT}",
        "worker.host_index": int(index) if index.isdigit() else 0,
    }


def _from_environ(environ: Mapping[str, str]) -> dict[str, object]:
    names = {variable_of(name): name for name in _specs()}
    values: dict[str, object] = {}
    for variable, text in environ.items():
        if not variable.startswith("AXON_") or variable in _CLIENT_VARIABLES:
            continue
        if variable not in names:
            raise Misconfigured(
                f"{variable} is no setting.{suggest(variable, (*names, *_CLIENT_VARIABLES))} "
                "Unset it, or see `axon config show`."
            )
        values[names[variable]] = parse(_specs()[names[variable]], text, f"environment variable {variable}")
    return values


def _find_file(file: Path | None, environ: Mapping[str, str]) -> Path | None:
    if file is None and (named := environ.get("AXON_CONFIG")):
        file = Path(os.path.expanduser(named))
    if file is not None and not file.is_file():
        raise Misconfigured(f"The settings file {file} does not exist. Create it, or name another with --config.")
    if file is None and Path(_DEFAULT_FILE).is_file():
        return Path(_DEFAULT_FILE)
    return file


def _from_file(path: Path | None) -> dict[str, object]:
    if path is None:
        return {}
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path} is not valid TOML: {error}. Correct it there.") from error
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}.") from error
    return {name: accept(_specs()[name], value, f"{name} in {path}") for name, value in _flatten(table, path)}


def _flatten(table: Mapping[str, object], path: Path) -> Iterable[tuple[str, object]]:
    specs = _specs()
    sections = {name.split(".")[0] for name in specs if "." in name}
    for key, value in table.items():
        if key == "models" and isinstance(value, dict):
            yield key, table_text(value)
            continue
        if key in sections and not isinstance(value, dict):
            raise Misconfigured(f"{key} in {path} is a section: write [{key}] and its keys below.")
        inner = {f"{key}.{name}": each for name, each in value.items()} if isinstance(value, dict) else {key: value}
        if isinstance(value, dict) and key not in sections:
            raise Misconfigured(f"[{key}] in {path} is no section.{suggest(key, sections)}")
        for name, each in inner.items():
            if name not in specs:
                raise Misconfigured(f"{name} in {path} is no setting.{suggest(name, specs)}")
            yield name, each


def _from_flags(flags: Mapping[str, object], spelled: Mapping[str, str]) -> dict[str, object]:
    given = {name: value for name, value in flags.items() if value is not None}
    for name in given:
        if name not in _specs():
            raise Misconfigured(f"{name} is no setting.{suggest(name, _specs())} `axon config show` lists them.")
    values: dict[str, object] = {}
    for name, value in given.items():
        spec, source = _specs()[name], spelled.get(name, f"flag for {name}")
        values[name] = parse(spec, value, source) if isinstance(value, str) else accept(spec, value, source)
    return values


def _build(values: Mapping[str, object]) -> Settings:
    top: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        section, _, key = name.rpartition(".")
        (sections.setdefault(section, {}) if section else top)[key] = value
    hints = get_type_hints(Settings)
    return Settings(**top, **{name: hints[name](**inner) for name, inner in sections.items()})


def _value(settings: Settings, name: str) -> object:
    value: object = settings
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _text(value: object) -> str:
    """A value as an environment variable has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _show(settings: Settings, spec: Spec, name: str) -> object:
    value = _value(settings, name)
    return str(value) if isinstance(value, Path) else hide(spec, value)


def _default_data_dir(environ: Mapping[str, str]) -> Path:
    data_home = environ.get("XDG_DATA_HOME", "")
    # The XDG rules: a relative path is to be ignored.
    base = Path(data_home) if os.path.isabs(data_home) else Path.home() / ".local" / "share"
    return base / "axon"


def _name_of(model: str, engine: str) -> str:
    if engine == "echo":
        return "echo"
    if model == "default":
        return "smollm2-135m-instruct"
    path = Path(model)
    return path.stem if path.suffix == ".gguf" else path.absolute().name

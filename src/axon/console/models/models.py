"""``axon models``: what a running server offers, what lies in the models folder, and what the registry has of them."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axon.console.administration import ACTOR, show_json
from axon.console.flags import ApiKey, ConfigFile, DataDir, Json, Live, Set, Store, Url, load
from axon.console.models import adapters
from axon.console.models.registry import RegistryAccess, Revision, show_records
from axon.errors import Unavailable

if TYPE_CHECKING:
    from axon.domain.registry.model import Model
    from axon.domain.registry.snapshot import Snapshot
    from axon.settings import Settings

app = typer.Typer(help="Add models to the registry, look at them and remove them.")

app.add_typer(adapters.app, name="adapters")

ModelName = Annotated[str, typer.Argument(metavar="NAME", help="The model's name in the registry.")]
ModelOrVersion = Annotated[str, typer.Argument(metavar="NAME[@VERSION]", help="A model, or one of its versions.")]


@app.callback(invoke_without_command=True)
def _plain(context: typer.Context) -> None:
    """Add models to the registry, look at them and remove them. Alone, it lists them."""
    if context.invoked_subcommand is None:
        index()


@app.command("list")
def index(
    registered: Annotated[bool, typer.Option("--registered", help="Those in the registry instead.")] = False,
    url: Url = None,
    key: ApiKey = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """List the running server's models; with no server, those in the models folder.

    \b
    Examples:
      axon models list
      axon models list --url http://gpu-box:8000 --json
      axon models list --registered
    """
    if registered:
        _list_registered(RegistryAccess(store, data_dir, config_file).read(), as_json=as_json)
        return
    _list_served(load({"data_dir": data_dir}, config_file).settings, url=url, key=key, as_json=as_json)


@app.command()
def show(
    name: ModelName,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show a registered model with its versions and the deployments that serve them.

    \b
    Example:
      axon models show qwen3
    """
    found = RegistryAccess(store, data_dir, config_file).read()
    from axon.registry.rules import model_of

    model = model_of(found, name)
    _show_whole(found, model) if as_json else _tell(found, model)


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The model's name.")],
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="A folder, a .gguf file, hf://org/name@revision or s3://bucket/prefix."),
    ],
    label: Annotated[str, typer.Option(help="The version's name, such as v2. [default: from its digest]")] = "",
    engine: Annotated[
        str, typer.Option(metavar="KIND", help="What runs it: axon or vllm. [default: the server's own choice]")
    ] = "",
    deploy: Annotated[bool, typer.Option("--deploy", help="Also make a deployment of the model's name.")] = False,
    store: Store = None,
    live: Live = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Fetch a model into the models folder, check it and register the version that it is.

    A fetch that was stopped or killed goes on where it was when the same command is run again.

    \b
    Examples:
      axon models add qwen ~/models/Qwen3-0.6B --deploy
      axon models add qwen hf://Qwen/Qwen3-0.6B@main --label v1
      AWS_ENDPOINT_URL=http://minio:9000 axon models add qwen s3://models/qwen3
      axon models add falcon ~/models/falcon-h1 --engine vllm
    """
    settings = load({"data_dir": data_dir, "store": store, "live": live}, config_file, set_).settings
    from axon.console.models.fetching import fetch, register, show_fetched

    fetched = fetch(settings, name, source, label=label, engine=engine)
    RegistryAccess(settings=settings).change(lambda catalog: register(catalog, fetched, deploys=deploy), makes=True)
    show_fetched(fetched, deploys=deploy, as_json=as_json)


@app.command()
def remove(
    name: ModelOrVersion,
    revision: Revision = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
) -> None:
    """Remove a model that has no versions, or a version that nothing uses.

    Sessions that are pinned to a version keep it until they have been idle for a while.

    \b
    Examples:
      axon models remove qwen3@v1
      axon models remove qwen3
    """
    access = RegistryAccess(store, data_dir, config_file, live)
    if "@" in name:
        access.change(lambda catalog: catalog.remove_version(name, revision=revision, actor=ACTOR))
        print(f"Version {name} is removed.")
    else:
        access.change(lambda catalog: catalog.remove_model(name, revision=revision, actor=ACTOR))
        print(f"Model {name} is removed.")


def _list_served(settings: "Settings", *, url: str | None, key: str | None, as_json: bool) -> None:
    """Lists the models, and says whose they are."""
    from axon.console.server.server import Server

    with Server.find(settings, url=url, key=key) as server:
        try:
            listed = [{"id": name, "where": server.url, "state": state} for name, state in server.model_states()]
        except Unavailable:
            # Somebody who named a server wants to hear that it does not answer.
            if url is not None:
                raise
            listed = _on_disk(settings)
            print(f"No server answers at {server.url}; these are on disk:", file=sys.stderr)
    if as_json:
        print(json.dumps(listed, indent=2))
        return
    from axon.console.tables import print_table

    print_table(("model", "state", "where"), [(each["id"], each.get("state") or "-", each["where"]) for each in listed])


def _list_registered(found: "Snapshot", *, as_json: bool) -> None:
    versions = {
        name: ", ".join(each.label for each in found.versions.values() if each.model == name) for name in found.models
    }
    show_records(
        list(found.models.values()),
        {
            "model": lambda model: model.name,
            "versions": lambda model: versions[model.name] or "-",
            "can": lambda model: ", ".join(model.capabilities),
            "context": lambda model: str(model.max_model_len or "-"),
            "licence": lambda model: model.licence or "-",
            "revision": lambda model: str(model.revision),
        },
        as_json=as_json,
        nothing="The registry has no models.",
    )


def _show_whole(found: "Snapshot", model: "Model") -> None:
    from axon.registry.facts import facts_of

    versions = [facts_of(each) for each in found.versions.values() if each.model == model.name]
    deployments = [facts_of(each) for each in found.deployments.values() if each.model == model.name]
    whole: dict[str, Any] = {**facts_of(model), "versions": versions, "deployments": deployments}
    show_json(whole)


def _tell(found: "Snapshot", model: "Model") -> None:
    from axon.console.tables import print_table

    served = {
        each.id: ", ".join(deployed.name for deployed in found.deployments.values() if deployed.member(each.id))
        for each in found.versions.values()
        if each.model == model.name
    }
    licence = f", licence {model.licence}" if model.licence else ""
    print(f"{model.name}: {', '.join(model.capabilities)}; revision {model.revision}{licence}")
    versions = sorted((found.versions[each] for each in served), key=lambda each: each.revision)
    rows = [
        (each.id, served[each.id] or "-", str(each.max_model_len), each.settings.dtype, each.digest[:12], each.source)
        for each in versions
    ]
    if rows:
        print_table(("version", "deployments", "context", "dtype", "digest", "source"), rows)


def _on_disk(settings: "Settings") -> list[dict[str, str]]:
    packaged = {"id": "smollm2-135m-instruct", "where": "packaged (--model default)"}
    folder = settings.models_dir or Path()
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [packaged, *({"id": _name(path), "where": str(path)} for path in found if _is_model(path))]


def _is_model(path: Path) -> bool:
    return path.suffix == ".gguf" or any(path.glob("*.safetensors"))


def _name(path: Path) -> str:
    return path.stem if path.suffix == ".gguf" else path.name

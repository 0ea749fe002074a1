"""``axon models adapters``: LoRA adapters of models, straight in the store."""

import asyncio
from typing import Annotated

import typer

from axon.console.administration import ACTOR
from axon.console.flags import ConfigFile, DataDir, Json, Live, Set, Store, load
from axon.console.models.registry import RegistryAccess, Revision, show_record, show_records

app = typer.Typer(help="Add LoRA adapters to models, list and remove them.", no_args_is_help=True)

AdapterModel = Annotated[str, typer.Argument(metavar="MODEL", help="The model's name.")]
AdapterName = Annotated[str, typer.Argument(metavar="NAME", help="The adapter's name, behind the colon in requests.")]


@app.command()
def add(
    model: AdapterModel,
    name: AdapterName,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A folder of PEFT's, hf://org/name@revision or s3://bucket/prefix.")
    ],
    tenant: Annotated[str, typer.Option(help="The tenant that it is for; to others it does not exist.")] = "",
    store: Store = None,
    live: Live = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    set_: Set = None,
    as_json: Json = False,
) -> None:
    """Fetch a LoRA adapter, check it and register it: requests name it MODEL:NAME.

    An adapter that is there gets the new files; sessions that began with the earlier ones keep them.

    \b
    Examples:
      axon models adapters add qwen3 sql ~/adapters/sql
      axon models adapters add qwen3 support hf://acme/support-lora@main --tenant acme
    """
    settings = load({"data_dir": data_dir, "store": store, "live": live}, config_file, set_).settings
    from axon.bootstrap.models.adapters import fetch_adapter
    from axon.console.administration import quiet

    quiet(settings)
    fetched = asyncio.run(fetch_adapter(settings, model=model, label=name, source=source, tenant=tenant))
    access = RegistryAccess(settings=settings)
    made = access.change(lambda catalog: catalog.set_adapter(fetched, actor=ACTOR), makes=True)
    whose = f" for the tenant {tenant}" if tenant else ""
    show_record(made, f"Requests may name {made.id} now{whose}; digest {made.digest[:12]}.", as_json=as_json)


@app.command("list")
def index(store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None, as_json: Json = False) -> None:
    """List the adapters of all models.

    \b
    Example:
      axon models adapters list
    """
    found = RegistryAccess(store, data_dir, config_file).read()
    columns = {
        "adapter": lambda adapter: adapter.id,
        "tenant": lambda adapter: adapter.tenant or "-",
        "digest": lambda adapter: adapter.digest[:12],
        "source": lambda adapter: adapter.files[0].source,
        "revision": lambda adapter: str(adapter.revision),
    }
    show_records(list(found.adapters.values()), columns, as_json=as_json, nothing="The registry has no adapters.")


@app.command()
def remove(
    model: AdapterModel,
    name: AdapterName,
    revision: Revision = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
) -> None:
    """Remove an adapter: no request may name it any more. Turns that run with it end with it.

    \b
    Example:
      axon models adapters remove qwen3 sql
    """
    access = RegistryAccess(store, data_dir, config_file, live)
    access.change(lambda catalog: catalog.remove_adapter(f"{model}:{name}", revision=revision, actor=ACTOR))
    print(f"Adapter {model}:{name} is removed.")

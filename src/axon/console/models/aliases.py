"""``axon aliases``: other names for deployments, straight in the store."""

from typing import Annotated

import typer

from axon.console.administration import ACTOR
from axon.console.flags import ConfigFile, DataDir, Json, Live, Store
from axon.console.models.registry import RegistryAccess, Revision, show_record, show_records

app = typer.Typer(help="Set, list and remove aliases of deployments.", no_args_is_help=True)

AliasName = Annotated[str, typer.Argument(metavar="NAME", help="The alias.")]


@app.command("list")
def index(store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None, as_json: Json = False) -> None:
    """List the aliases with the deployments that they stand for.

    \b
    Example:
      axon aliases list
    """
    found = RegistryAccess(store, data_dir, config_file).read()
    columns = {
        "alias": lambda alias: alias.name,
        "deployment": lambda alias: alias.deployment,
        "revision": lambda alias: str(alias.revision),
    }
    show_records(list(found.aliases.values()), columns, as_json=as_json, nothing="The registry has no aliases.")


@app.command("set")
def set_(
    name: AliasName,
    deployment: Annotated[str, typer.Argument(metavar="DEPLOYMENT", help="The deployment that it stands for.")],
    revision: Revision = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Make an alias, or switch it to another deployment: every request means the one or the other.

    \b
    Example:
      axon aliases set best qwen3
    """
    access = RegistryAccess(store, data_dir, config_file, live)
    made = access.change(lambda catalog: catalog.set_alias(name, deployment, revision=revision, actor=ACTOR))
    show_record(made, f"{name} stands for {made.deployment}.", as_json=as_json)


@app.command()
def remove(
    name: AliasName,
    revision: Revision = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
) -> None:
    """Remove an alias; its deployment stays.

    \b
    Example:
      axon aliases remove best
    """
    access = RegistryAccess(store, data_dir, config_file, live)
    access.change(lambda catalog: catalog.remove_alias(name, revision=revision, actor=ACTOR))
    print(f"Alias {name} is removed.")

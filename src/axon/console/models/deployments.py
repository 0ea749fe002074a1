"""``axon deployments``: what is to run under which name, straight in the store."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axon.console.administration import ACTOR, seconds, show_json
from axon.console.flags import ConfigFile, DataDir, Json, Live, Store
from axon.console.models.registry import RegistryAccess, Revision, number, show_record, show_records
from axon.console.models.scaling_flags import (
    AtLeast,
    CostPerHour,
    Currency,
    ItlTarget,
    PricePerHour,
    TargetWait,
    TtftTarget,
    Utilisation,
    said_scaling,
    scaling_rows,
)
from axon.errors import Misconfigured

if TYPE_CHECKING:
    from axon.domain.registry.deployment import Deployment

app = typer.Typer(help="Create, list, show, change and remove deployments.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The deployment's name, by which clients ask for it.")]
MinReplicas = Annotated[int | None, typer.Option(help="Workers that serve it at least; 0 lets it go cold.")]
MaxReplicas = Annotated[int | None, typer.Option(help="Workers that serve it at most.")]
Pool = Annotated[str | None, typer.Option(help="Pool of workers that runs it; '' for the shared one.")]
Memory = Annotated[int | None, typer.Option(help="Memory of one replica; 0 for what it needs.")]
Devices = Annotated[int | None, typer.Option(help="GPUs of one replica; 0 for the CPU.")]
Idle = Annotated[str | None, typer.Option(metavar="TIME", help="Time without a request after which it may go cold.")]
Patience = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Time without a worker after which a version's sessions are moved."),
]
Hot = Annotated[
    bool | None, typer.Option("--hot/--no-hot", help="It never goes cold: at least one worker runs, asked or not.")
]
ColdPatience = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Time that a turn may wait for the first worker, beyond a turn's own time."),
]
Fallbacks = Annotated[
    list[str] | None,
    typer.Option("--fallback", metavar="NAME", help="A deployment that answers in its place; repeatable, in order."),
]


@app.command("list")
def index(store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None, as_json: Json = False) -> None:
    """List the deployments.

    \b
    Examples:
      axon deployments list
      axon deployments list --json
    """
    found = RegistryAccess(store, data_dir, config_file).read()
    show_records(
        list(found.deployments.values()),
        {
            "deployment": lambda each: each.name,
            "model": lambda each: each.model,
            "stable": lambda each: each.stable,
            "versions": lambda each: ", ".join(f"{member.version} {member.state}" for member in each.members),
            "replicas": lambda each: f"{each.min_replicas}-{each.max_replicas}",
            "pool": lambda each: each.pool or "-",
            "revision": lambda each: str(each.revision),
        },
        as_json=as_json,
        nothing="The registry has no deployments.",
    )


@app.command()
def show(
    name: Name, store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None, as_json: Json = False
) -> None:
    """Show a deployment: its versions, its settings and its rollout.

    \b
    Example:
      axon deployments show qwen3
    """
    found = RegistryAccess(store, data_dir, config_file).read()
    from axon.console.tables import print_table
    from axon.registry.facts import facts_of
    from axon.registry.rules import deployment_of

    deployment = deployment_of(found, name)
    if as_json:
        show_json(facts_of(deployment))
        return
    print_table(("setting", deployment.name), _settings(deployment))
    members = [(each.version, each.letter or "-", str(each.state)) for each in deployment.members]
    print_table(("version", "letter", "state"), members)


@app.command()
def create(
    name: Name,
    model: Annotated[str, typer.Option(help="Name of its model.")],
    version: Annotated[str, typer.Option(help="The version that sessions begin on: its label or its id.")],
    min_replicas: MinReplicas = None,
    max_replicas: MaxReplicas = None,
    pool: Pool = None,
    memory_bytes: Memory = None,
    devices: Devices = None,
    idle: Idle = None,
    hot: Hot = None,
    cold_patience: ColdPatience = None,
    patience: Patience = None,
    num_lanes: Annotated[int | None, typer.Option(help="Lanes of each tier and version; fixed for good.")] = None,
    fallback: Fallbacks = None,
    utilisation: Utilisation = None,
    target_wait: TargetWait = None,
    ttft_target: TtftTarget = None,
    itl_target: ItlTarget = None,
    price_per_hour: PricePerHour = None,
    currency: Currency = None,
    cost_per_hour: CostPerHour = None,
    at_least: AtLeast = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Create a deployment of a registered version.

    \b
    Examples:
      axon deployments create qwen3 --model qwen3 --version v1
      axon deployments create qwen3-batch --model qwen3 --version v1 --min-replicas 0 --idle 10m --pool batch
      axon deployments create qwen3-main --model qwen3 --version v1 --hot
    """
    access = RegistryAccess(store, data_dir, config_file, live)
    said = _said(
        min_replicas=min_replicas,
        max_replicas=max_replicas,
        pool=pool,
        memory_bytes=memory_bytes,
        devices=devices,
        idle_s=_time(idle, "--idle"),
        hot=hot,
        cold_patience_s=_time(cold_patience, "--cold-patience"),
        patience_s=_time(patience, "--patience"),
        num_lanes=num_lanes,
        fallbacks=fallback and tuple(fallback),
    )
    aims = said_scaling(
        utilisation=utilisation,
        target_wait=target_wait,
        ttft_target=ttft_target,
        itl_target=itl_target,
        price_per_hour=price_per_hour,
        currency=currency,
        cost_per_hour=cost_per_hour,
        at_least=at_least,
    )
    from axon.domain.registry.deployment import Deployment
    from axon.domain.registry.scaling import Scaling
    from axon.domain.registry.version import version_id

    asked = Deployment(name=name, model=model, scaling=Scaling(**aims), created=0.0, **said)
    named = version if "@" in version else version_id(model, version)
    made = access.change(lambda catalog: catalog.create_deployment(asked, named, actor=ACTOR))
    show_record(made, f"Deployment {name} is made: sessions begin on {made.stable}.", as_json=as_json)


@app.command()
def change(
    name: Name,
    min_replicas: MinReplicas = None,
    max_replicas: MaxReplicas = None,
    pool: Pool = None,
    memory_bytes: Memory = None,
    devices: Devices = None,
    idle: Idle = None,
    hot: Hot = None,
    cold_patience: ColdPatience = None,
    patience: Patience = None,
    utilisation: Utilisation = None,
    target_wait: TargetWait = None,
    ttft_target: TtftTarget = None,
    itl_target: ItlTarget = None,
    price_per_hour: PricePerHour = None,
    currency: Currency = None,
    cost_per_hour: CostPerHour = None,
    at_least: AtLeast = None,
    no_at_least: Annotated[bool, typer.Option("--no-at-least", help="No minimum by the clock.")] = False,
    fallback: Fallbacks = None,
    no_fallbacks: Annotated[bool, typer.Option("--no-fallbacks", help="No other answers in its place.")] = False,
    revision: Revision = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
    as_json: Json = False,
) -> None:
    """Change a deployment's settings; gateways know within a second.

    \b
    Examples:
      axon deployments change qwen3 --max-replicas 4
      axon deployments change qwen3 --price-per-hour 2.5 --cost-per-hour 20
      axon deployments change qwen3 --at-least '4 08:00-20:00 mon-fri Europe/Berlin'
      axon deployments change qwen3 --fallback qwen3-small --revision 12
    """
    access = RegistryAccess(store, data_dir, config_file, live)
    if fallback and no_fallbacks:
        raise Misconfigured("Say --fallback or --no-fallbacks, not both.")
    said = _said(
        min_replicas=min_replicas,
        max_replicas=max_replicas,
        pool=pool,
        memory_bytes=memory_bytes,
        devices=devices,
        idle_s=_time(idle, "--idle"),
        hot=hot,
        cold_patience_s=_time(cold_patience, "--cold-patience"),
        patience_s=_time(patience, "--patience"),
        fallbacks=() if no_fallbacks else fallback and tuple(fallback),
    )
    aims = said_scaling(
        utilisation=utilisation,
        target_wait=target_wait,
        ttft_target=ttft_target,
        itl_target=itl_target,
        price_per_hour=price_per_hour,
        currency=currency,
        cost_per_hour=cost_per_hour,
        at_least=at_least,
        no_at_least=no_at_least,
    )
    if not said and not aims:
        raise Misconfigured("There is nothing to change: say --max-replicas, --pool or another setting.")
    new = access.change(
        lambda catalog: catalog.change_deployment(
            name,
            lambda old: replace(old, scaling=replace(old.scaling, **aims), **said),
            revision=revision,
            actor=ACTOR,
        )
    )
    show_record(new, f"Deployment {name} is changed: its revision is {new.revision}.", as_json=as_json)


@app.command()
def remove(
    name: Name,
    revision: Revision = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    live: Live = None,
) -> None:
    """Remove a deployment that nothing leads to and no session is pinned to; its versions stay registered.

    \b
    Example:
      axon deployments remove qwen3-batch
    """
    access = RegistryAccess(store, data_dir, config_file, live)
    access.change(lambda catalog: catalog.remove_deployment(name, revision=revision, actor=ACTOR))
    print(f"Deployment {name} is removed.")


def _said(**values: Any) -> dict[str, Any]:
    """The settings that were given."""
    return {name: value for name, value in values.items() if value is not None}


def _time(text: str | None, flag: str) -> float | None:
    return None if text is None else seconds(text, flag)


def _settings(deployment: "Deployment") -> list[tuple[str, str]]:
    rollout = deployment.rollout
    return [
        ("model", deployment.model),
        ("stable", deployment.stable),
        ("rollout", f"{rollout.new} {rollout.state} at {rollout.share / 100:g}%" if rollout else "-"),
        ("replicas", f"{deployment.min_replicas} to {deployment.max_replicas}"),
        *scaling_rows(deployment.scaling),
        ("pool", deployment.pool or "-"),
        ("memory_bytes", str(deployment.memory_bytes or "-")),
        ("devices", str(deployment.devices or "-")),
        ("hot", "yes" if deployment.hot else "no"),
        ("idle_s", number(deployment.idle_s) if deployment.idle_s else "never cold"),
        ("cold_patience_s", number(deployment.cold_patience_s)),
        ("patience_s", number(deployment.patience_s)),
        ("num_lanes", str(deployment.num_lanes)),
        ("fallbacks", ", ".join(deployment.fallbacks) or "-"),
        ("revision", str(deployment.revision)),
    ]

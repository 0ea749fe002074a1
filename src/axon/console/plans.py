"""``axon plans``: limits under a name, straight in the store."""

import sys
from typing import Annotated, Any

import typer

from axon.console.accounts import LimitFlags, UnsetFlags, changed, in_store, limit_facts, limit_words, show_json
from axon.console.flags import ConfigFile, DataDir, Json, Store, load
from axon.domain.tenant import Limits, Plan

app = typer.Typer(help="Make, list, change and remove plans.", no_args_is_help=True)

PlanName = Annotated[str, typer.Argument(metavar="NAME", help="The plan's name; 'default' is for whoever has none.")]


@app.command("list")
def index(store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None, as_json: Json = False) -> None:
    """List the plans with their limits.

    \b
    Examples:
      axon plans list
      axon plans list --json
    """
    settings = load({"store": store, "data_dir": data_dir}, config_file).settings
    found = in_store(settings, lambda accounts: accounts.tenancy.plans())
    if as_json:
        show_json([_facts(plan) for plan in found])
        return
    if not found:
        print("There are no plans yet: the server's settings hold. Make one with `axon plans create`.", file=sys.stderr)
        return
    from axon.console.tables import print_table

    print_table(("name", "limits"), [(plan.name, limit_words(plan.limits) or "-") for plan in found])


@app.command()
def create(
    name: PlanName,
    limit: LimitFlags = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Make a plan.

    \b
    Examples:
      axon plans create pro --limit requests_per_minute=600 --limit weight=4 --limit highest_tier=priority
      axon plans create default --limit tokens_per_day=100000
    """
    settings = load({"store": store, "data_dir": data_dir}, config_file).settings
    limits = changed(Limits(), limit)
    _done(in_store(settings, lambda accounts: accounts.tenancy.create_plan(name, limits)), "is made", as_json=as_json)


@app.command()
def change(
    name: PlanName,
    limit: LimitFlags = None,
    unset: UnsetFlags = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Change some of a plan's limits; they hold for all of its tenants within a second.

    \b
    Example:
      axon plans change pro --limit weight=8 --unset tokens_per_day
    """
    settings = load({"store": store, "data_dir": data_dir}, config_file).settings
    changed(Limits(), limit, unset)  # a misspelt one is told before anything is opened
    made = in_store(
        settings, lambda accounts: accounts.tenancy.change_plan(name, lambda old: changed(old, limit, unset))
    )
    _done(made, "is changed", as_json=as_json)


@app.command()
def remove(name: PlanName, store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None) -> None:
    """Forget a plan that no tenant is on.

    \b
    Example:
      axon plans remove pro
    """
    settings = load({"store": store, "data_dir": data_dir}, config_file).settings
    in_store(settings, lambda accounts: accounts.tenancy.remove_plan(name))
    print(f"Plan {name} is removed.")


def _done(plan: Plan, what: str, *, as_json: bool) -> None:
    if as_json:
        show_json(_facts(plan))
    else:
        print(f"Plan {plan.name} {what}: {limit_words(plan.limits) or 'no limits'}.")


def _facts(plan: Plan) -> dict[str, Any]:
    return {"name": plan.name, "limits": limit_facts(plan.limits)}

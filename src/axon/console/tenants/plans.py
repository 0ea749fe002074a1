"""``axon plans``: limits under a name, straight in the store."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from axon.console.administration import (
    ACTOR,
    LimitFlags,
    UnsetFlags,
    change_in_store,
    changed,
    check_id_flag,
    in_store,
    limit_words,
    show_done,
    show_json,
    show_listed,
    shown,
)
from axon.console.flags import ConfigFile, DataDir, Json, Store, of_store
from axon.domain.tenants.tenant import DEFAULT_PLAN, Limits, Plan
from axon.errors import Misconfigured, NotFound
from axon.tenants.facts import LIMITS, plan_facts

if TYPE_CHECKING:
    from axon.bootstrap.administration import Administration

app = typer.Typer(help="Make, list, show, change and remove plans.", no_args_is_help=True)

PlanName = Annotated[str, typer.Argument(metavar="NAME", help="The plan's name; 'default' is for whoever has none.")]

_NO_LIMITS = "those of the server's settings"
"""What a plan says that sets no limit of its own."""
_UNCHANGED = Plan(name=DEFAULT_PLAN, limits=Limits())
"""The plan of tenants that name none, as long as nobody has made it: it leaves every limit to the server's settings."""


@app.command("list")
def index(store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None, as_json: Json = False) -> None:
    """List the plans with their limits.

    \b
    Examples:
      axon plans list
      axon plans list --json
    """
    settings = of_store(store, data_dir, config_file)
    made = in_store(settings, lambda admin: admin.tenancy.plans())
    found = made if any(plan.name == DEFAULT_PLAN for plan in made) else [_UNCHANGED, *made]
    if not made and not as_json:
        print(
            f"No plan has been made. Tenants are on '{DEFAULT_PLAN}', whose limits are those of the server's settings; "
            "`axon plans create --help` shows how to make another.",
            file=sys.stderr,
        )
    rows = [(plan.name, limit_words(plan.limits) or _NO_LIMITS) for plan in found]
    show_listed([plan_facts(plan) for plan in found], ("name", "limits"), rows, as_json=as_json)


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
    settings = of_store(store, data_dir, config_file)
    check_id_flag("NAME", name)
    limits = changed(Limits(), limit)

    done = change_in_store(settings, lambda admin: admin.tenancy.create_plan(name, limits, actor=ACTOR), makes=True)
    _done(done, "is made", as_json=as_json)


@app.command()
def show(
    name: PlanName,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show a plan: the limits that it sets; the others are left to the server's settings.

    \b
    Example:
      axon plans show pro
    """
    settings = of_store(store, data_dir, config_file)

    async def act(admin: "Administration") -> Plan:
        try:
            return await admin.tenancy.plan(name)
        except NotFound:
            if name != DEFAULT_PLAN:
                raise
            return _UNCHANGED

    plan = in_store(settings, act)
    if as_json:
        show_json(plan_facts(plan))
        return
    from axon.console.tables import print_table

    values = [(each, getattr(plan.limits, each)) for each in LIMITS]
    print_table(("limit", plan.name), [(each, "-" if value is None else shown(value)) for each, value in values])


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
    settings = of_store(store, data_dir, config_file)
    if not limit and not unset:
        raise Misconfigured("There is nothing to change: say --limit or --unset.")
    changed(Limits(), limit, unset)  # reports a misspelt limit before anything is opened

    done = change_in_store(
        settings, lambda admin: admin.tenancy.change_plan(name, lambda old: changed(old, limit, unset), actor=ACTOR)
    )
    _done(done, "is changed", as_json=as_json)


@app.command()
def remove(name: PlanName, store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None) -> None:
    """Forget a plan that no tenant is on. On 'default' are all who name none: unset its limits instead.

    \b
    Example:
      axon plans remove pro
    """
    settings = of_store(store, data_dir, config_file)
    in_store(settings, lambda admin: admin.tenancy.remove_plan(name, actor=ACTOR))
    print(f"Plan {name} is removed.")


def _done(plan: Plan, what: str, *, as_json: bool) -> None:
    sentence = f"Plan {plan.name} {what}: its limits are {limit_words(plan.limits) or _NO_LIMITS}."
    show_done(sentence, plan_facts(plan), as_json=as_json)

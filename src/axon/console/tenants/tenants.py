"""``axon tenants``: who is served, straight in the store. A running server reads the same store within a second."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from axon.console.administration import (
    ACTOR,
    LimitFlags,
    UnsetFlags,
    change_in_store,
    changed,
    check_id_flag,
    check_name_flag,
    in_store,
    limit_words,
    moment,
    show_done,
    show_json,
    show_listed,
    shown,
)
from axon.console.flags import ConfigFile, DataDir, Json, Store, of_store
from axon.domain.tenants.storage import Stored
from axon.domain.tenants.tenant import DEFAULT_PLAN, Limits, Tenant, Terms
from axon.errors import Misconfigured
from axon.tenants.facts import LIMITS, limit_facts, tenant_facts, tenant_status

if TYPE_CHECKING:
    from axon.bootstrap.administration import Administration

app = typer.Typer(help="Make, list, change, suspend and remove tenants.", no_args_is_help=True)

TenantId = Annotated[str, typer.Argument(metavar="ID", help="The tenant's id, as in `axon tenants list`.")]
PlanName = Annotated[str | None, typer.Option("--plan", help="Whose limits hold where it has none of its own.")]
Name = Annotated[str | None, typer.Option("--name", help="For people.")]


@app.command("list")
def index(store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None, as_json: Json = False) -> None:
    """List the tenants with the limits of their own.

    \b
    Examples:
      axon tenants list
      axon tenants list --json | jq -r '.[] | select(.status == "suspended").id'
    """
    settings = of_store(store, data_dir, config_file)
    found = in_store(settings, lambda admin: admin.tenancy.tenants())
    if not found and not as_json:
        print("There are no tenants yet. Make one with `axon tenants create`.", file=sys.stderr)
    rows = [
        (
            each.id,
            each.name or "-",
            each.plan,
            tenant_status(each),
            moment(each.created_at) or "-",
            limit_words(each.limits),
        )
        for each in found
    ]
    columns = ("id", "name", "plan", "status", "created", "own limits")
    show_listed([tenant_facts(tenant) for tenant in found], columns, rows, as_json=as_json)


@app.command()
def create(
    tenant_id: TenantId,
    name: Name = None,
    plan: PlanName = None,
    limit: LimitFlags = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Make a tenant. It needs a key next: `axon keys create --tenant ID`.

    \b
    Examples:
      axon tenants create acme --name "Acme Inc." --plan pro
      axon tenants create acme --limit requests_per_minute=60 --limit weight=2
    """
    settings = of_store(store, data_dir, config_file)
    check_id_flag("ID", tenant_id)
    check_name_flag(name or "")
    limits, on = changed(Limits(), limit), DEFAULT_PLAN if plan is None else plan

    done = change_in_store(
        settings,
        lambda admin: admin.tenancy.create(tenant_id, name=name or "", plan=on, limits=limits, actor=ACTOR),
        makes=True,
    )
    _done(done, "is made", as_json=as_json)


@app.command()
def show(
    tenant_id: TenantId,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show a tenant: its own limits, its plan's, what holds, and how much is stored for it.

    \b
    Example:
      axon tenants show acme
    """
    settings = of_store(store, data_dir, config_file)

    async def act(admin: "Administration") -> tuple[Tenant, Limits, Terms, Stored]:
        tenant = await admin.tenancy.tenant(tenant_id)
        plans = {plan.name: plan.limits for plan in await admin.tenancy.plans()}
        terms, stored = await admin.tenancy.terms(tenant), await admin.tenancy.stored(tenant_id)
        return tenant, plans.get(tenant.plan, Limits()), terms, stored

    tenant, of_plan, terms, stored = in_store(settings, act)
    if as_json:
        kept = {"bytes": stored.num_bytes, "objects": stored.num_objects}
        show_json(
            {**tenant_facts(tenant), "plan_limits": limit_facts(of_plan), "terms": limit_facts(terms), "stored": kept}
        )
        return
    from axon.console.tables import print_table

    since = moment(tenant.created_at)
    print(f"{tenant.id}  {tenant.name or '-'}  plan {tenant.plan}  {tenant_status(tenant)}  since {since}\n")
    rows = [
        [name, _cell(getattr(tenant.limits, name)), _cell(getattr(of_plan, name)), _held(name, getattr(terms, name))]
        for name in LIMITS
    ]
    print_table(("limit", "own", "plan's", "holds"), rows)
    print(f"\nstored: {stored.num_bytes} bytes in {stored.num_objects} objects")


@app.command()
def change(
    tenant_id: TenantId,
    name: Name = None,
    plan: PlanName = None,
    limit: LimitFlags = None,
    unset: UnsetFlags = None,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Change a tenant's name, plan or limits; what is not named stays. Holds within a second.

    \b
    Examples:
      axon tenants change acme --plan pro
      axon tenants change acme --limit tokens_per_day=1000000 --unset weight
    """
    settings = of_store(store, data_dir, config_file)
    if name is None and plan is None and not limit and not unset:
        raise Misconfigured("There is nothing to change: say --name, --plan, --limit or --unset.")
    changed(Limits(), limit, unset)  # reports a misspelt limit before anything is opened
    check_name_flag(name or "")

    def anew(old: Tenant) -> Tenant:
        own = changed(old.limits, limit, unset)
        return replace(
            old, name=old.name if name is None else name, plan=old.plan if plan is None else plan, limits=own
        )

    done = change_in_store(settings, lambda admin: admin.tenancy.change(tenant_id, anew, actor=ACTOR))
    _done(done, "is changed", as_json=as_json)


@app.command()
def suspend(tenant_id: TenantId, store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None) -> None:
    """Suspend a tenant: its keys open nothing, what it has is kept.

    \b
    Example:
      axon tenants suspend acme
    """
    settings = of_store(store, data_dir, config_file)
    _done(in_store(settings, lambda admin: admin.tenancy.suspend(tenant_id, actor=ACTOR)), "is suspended")


@app.command()
def resume(tenant_id: TenantId, store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None) -> None:
    """Let a suspended tenant's keys in again.

    \b
    Example:
      axon tenants resume acme
    """
    settings = of_store(store, data_dir, config_file)
    _done(in_store(settings, lambda admin: admin.tenancy.resume(tenant_id, actor=ACTOR)), "is resumed")


@app.command()
def remove(tenant_id: TenantId, store: Store = None, data_dir: DataDir = None, config_file: ConfigFile = None) -> None:
    """Forget a tenant whose keys are all revoked or expired; what it has used is still counted.

    \b
    Example:
      axon tenants remove acme
    """
    settings = of_store(store, data_dir, config_file)
    in_store(settings, lambda admin: admin.tenancy.remove(tenant_id, actor=ACTOR))
    print(f"Tenant {tenant_id} is removed.")


def _done(tenant: Tenant, what: str, *, as_json: bool = False) -> None:
    show_done(f"Tenant {tenant.id} {what}.", tenant_facts(tenant), as_json=as_json)


def _cell(value: object) -> str:
    return "-" if value is None else shown(value)


def _held(name: str, value: object) -> str:
    """A limit for display; 0 means unlimited, except for weight and reserve."""
    free = {"models": "all", "pool": "shared", "reserved": "0"}
    return shown(value) if value else free.get(name, "no limit")

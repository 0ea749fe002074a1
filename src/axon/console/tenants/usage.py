"""``axon usage``: usage and cost summed by tenant, day and model, from the store."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from axon.console.administration import check_known, in_store, seconds, show_json
from axon.console.flags import ConfigFile, DataDir, Json, Store, of_store
from axon.domain.billing.cost import Amount
from axon.domain.billing.replica_use import ReplicaSum
from axon.domain.billing.usage_sum import UsageSum
from axon.errors import Misconfigured
from axon.runtime.clock import SystemClock
from axon.tenants.facts import usage_facts

if TYPE_CHECKING:
    from axon.bootstrap.administration import Administration

_COLUMNS = ("turns", "prompt_tokens", "cached_tokens", "output_tokens", "total_tokens")
_PARTS = ("day", "model")
_REPLICAS = ("cold_starts", "cold_start_s", "dedicated_s", "replica_cost")
"""Columns that are shown where somebody pays for replicas' time."""


class By(StrEnum):
    DAY = "day"
    MODEL = "model"
    TENANT = "tenant"


def usage(
    tenant: Annotated[str | None, typer.Option(help="Of this tenant alone.")] = None,
    since: Annotated[str, typer.Option(metavar="DAY", help="A day as 2026-11-15, or a time back such as 7d.")] = "30d",
    until: Annotated[
        str | None, typer.Option(metavar="DAY", help="The day before which it ends; now, unless given.")
    ] = None,
    by: Annotated[By, typer.Option(help="A line a day, a model or a tenant.")] = By.TENANT,
    store: Store = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
    as_json: Json = False,
) -> None:
    """Show what tenants have used, in tokens and in money. Days are UTC; a turn counts on the day it ended.

    \b
    Examples:
      axon usage
      axon usage --tenant acme --since 7d --by day
      axon usage --by model
      axon usage --since 2026-11-01 --until 2026-12-01 --json
    """
    settings = of_store(store, data_dir, config_file)
    now = SystemClock().now()
    start, end = _time(since, "--since", now), _time(until, "--until", now) if until else now
    if start >= end:
        raise Misconfigured("--since must be earlier than --until, which is now unless it is given.")

    async def act(admin: "Administration") -> Sequence[UsageSum]:
        sums = await admin.tenancy.usage(
            since=start, until=end, tenant=tenant, by_day=by is By.DAY, by_model=by is By.MODEL
        )
        if tenant is not None and not sums:
            await check_known(admin, tenant, now)
        return sums

    found = in_store(settings, act)
    listed = [usage_facts(spent) for spent in found]
    if as_json:
        show_json(listed)
        return
    if not listed:
        print("Nothing was used in this time.", file=sys.stderr)
        return
    from axon.console.tables import print_table

    columns = ("tenant", *(part for part in _PARTS if part == by), *_COLUMNS)
    rows = [
        [*(str(facts[column]) for column in columns), _money(spent.costs)]
        for facts, spent in zip(listed, found, strict=True)
    ]
    if not any(spent.replicas for spent in found):
        print_table((*columns, "cost"), rows)
        return
    more = [_replicas(spent.replicas) for spent in found]
    print_table((*columns, "cost", *_REPLICAS), [[*row, *each] for row, each in zip(rows, more, strict=True)])


def _money(costs: Sequence[Amount]) -> str:
    return " + ".join(f"{amount.text} {amount.currency}" for amount in costs)


def _replicas(spent: ReplicaSum) -> tuple[str, ...]:
    seconds = (f"{spent.cold_start_s:.1f}", f"{spent.dedicated_s:.1f}")
    return (str(spent.cold_starts), *seconds, _money(spent.costs))


def _time(text: str, flag: str, now: float) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        pass
    try:
        return now - seconds(text, flag)
    except Misconfigured:
        raise Misconfigured(f"{flag} {text}: write a day as 2026-11-15, or a time back such as 7d.") from None

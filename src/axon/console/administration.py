"""Common parts of the commands for tenants, plans, keys and usage: opening the store, parsing limits and times."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from axon.domain.names import ID_RULE, KEY_RULE, holds_key
from axon.domain.tenants.tenant import NAME_RULE, Limits, Tier, check_id, check_name, wrong_limit
from axon.errors import InvalidInput, Misconfigured, NotFound
from axon.tenants.facts import LIMITS, limit_facts

if TYPE_CHECKING:
    from axon.bootstrap.administration import Administration
    from axon.settings import Settings

T = TypeVar("T")
ACTOR = "cli"
"""Who made a change, in the audit trail."""
_FRACTIONS = ("requests_per_minute", "tokens_per_minute", "weight", "kv_share", "reserved")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")

LimitFlags = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=VALUE", help=f"A limit; repeatable. Names: {', '.join(LIMITS)}."),
]
UnsetFlags = Annotated[
    list[str] | None,
    typer.Option("--unset", metavar="NAME", help="A limit that is left to the plan or the server again; repeatable."),
]


def in_store(
    settings: "Settings",
    act: Callable[["Administration"], Awaitable[T]],
    *,
    makes: bool = False,
    tells: bool = False,
) -> T:
    """Opens the store for one action; it must exist unless the action creates something. Logs warnings only."""
    from axon.bootstrap.administration import open_administration

    async def run() -> T:
        async with open_administration(settings, makes=makes, tells=tells) as admin:
            return await act(admin)

    quiet(settings)
    return asyncio.run(run())


def change_in_store(
    settings: "Settings", change: Callable[["Administration"], Awaitable[T]], *, makes: bool = False
) -> T:
    """Runs an action that may change a reservation, and warns if more than everything is reserved then."""

    async def act(admin: "Administration") -> T:
        done = await change(admin)
        await warn_of_reserves(admin)
        return done

    return in_store(settings, act, makes=makes)


def show_done(sentence: str, facts: dict[str, Any], *, as_json: bool) -> None:
    """Prints a command's result: the object as the API shows it, or a sentence."""
    show_json(facts) if as_json else print(sentence)


def show_listed(
    listed: Sequence[dict[str, Any]], columns: Sequence[str], rows: Sequence[Sequence[str]], *, as_json: bool
) -> None:
    """Prints a list of objects as the API shows them, or as a table; nothing for an empty table."""
    if as_json:
        show_json(list(listed))
    elif rows:
        from axon.console.tables import print_table

        print_table(columns, rows)


def quiet(settings: "Settings") -> None:
    """Limits logs to warnings."""
    from axon.telemetry import logs

    logs.configure(replace(settings.log, level="warning"))


def changed(limits: Limits, assignments: Sequence[str] | None, unset: Sequence[str] | None = None) -> Limits:
    """Applies the flags to the limits."""
    values: dict[str, Any] = {}
    for each in assignments or ():
        name, equals, text = each.partition("=")
        if not equals:
            raise Misconfigured(f"--limit {each}: write NAME=VALUE, such as --limit weight=2.")
        _add(values, "--limit", name.strip(), _value(_known(name.strip()), text.strip()))
        check_no_key_flag(f"--limit {name.strip()}", text)
        if wrong := wrong_limit(Limits(**{name.strip(): values[name.strip()]})):
            raise Misconfigured(f"--limit {each}: it must be {wrong[1]}.")
    for name in unset or ():
        _add(values, "--unset", _known(name.strip()), None)
    return replace(limits, **values)


def check_id_flag(flag: str, text: str) -> None:
    """Raises for an invalid id of a tenant or plan."""
    check_no_key_flag(flag, text)
    try:
        check_id(text)
    except InvalidInput:
        raise Misconfigured(f"{flag} {text!r}: it must have {ID_RULE}.") from None


def check_name_flag(name: str) -> None:
    """Raises for an invalid --name."""
    check_no_key_flag("--name", name)
    try:
        check_name(name)
    except InvalidInput:
        raise Misconfigured(f"--name {name!r}: it must be {NAME_RULE}.") from None


def check_no_key_flag(flag: str, text: str) -> None:
    """Raises, without repeating it, for a text with an API key in it."""
    if holds_key(text):
        raise Misconfigured(f"{flag}: {KEY_RULE}.")


async def check_known(admin: "Administration", tenant: str, now: float) -> None:
    """Raises ``NotFound`` for a tenant that does not exist and has no usage."""
    try:
        await admin.tenancy.tenant(tenant)
    except NotFound:
        left = await admin.keyring.all(tenant=tenant) or await admin.tenancy.usage(since=0.0, until=now, tenant=tenant)
        if not left:
            raise


async def warn_of_reserves(admin: "Administration") -> None:
    """A warning if more than everything is reserved."""
    reserved = await admin.tenancy.reserved()
    if reserved > 1 + 1e-9:
        print(
            f"axon: {reserved:.4g} of every shared worker's slots is reserved in all, which is more than 1: when "
            "everybody asks, each gets its reserve's part of the whole, and nobody else a slot.",
            file=sys.stderr,
        )


def seconds(text: str, flag: str) -> float:
    """Parses a duration such as 90s, 12h or 7d to seconds."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise Misconfigured(f"{flag} {text}: write a number and s, m, h, d or w, such as 30d or 90m.")
    return float(found[1]) * _UNITS[found[2]]


def moment(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def limit_words(limits: Limits) -> str:
    """Limits on one line."""
    return " ".join(f"{name}={shown(value)}" for name, value in limit_facts(limits).items())


def shown(value: object) -> str:
    """A limit as its flag takes it."""
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def show_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def _known(name: str) -> str:
    if name not in LIMITS:
        from difflib import get_close_matches

        close = get_close_matches(name, LIMITS, n=1)
        meant = f" Did you mean {close[0]}?" if close else f" There are: {', '.join(LIMITS)}."
        raise Misconfigured(f"{name} is no limit.{meant}")
    return name


def _add(values: dict[str, Any], flag: str, name: str, value: object) -> None:
    if name in values:
        raise Misconfigured(f"{flag} {name}: the limit {name} is named twice.")
    values[name] = value


def _value(name: str, text: str) -> object:
    try:
        match name:
            case "highest_tier":
                return Tier(text)
            case "models":
                return tuple(model.strip() for model in text.split(",")) if text else ()
            case "pool":
                return text
            case _:
                return float(text) if name in _FRACTIONS else int(text)
    except ValueError:
        kind = {"highest_tier": f"one of {', '.join(Tier)}"} | dict.fromkeys(_FRACTIONS, "a number")
        raise Misconfigured(f"--limit {name}={text}: it must be {kind.get(name, 'a whole number')}.") from None

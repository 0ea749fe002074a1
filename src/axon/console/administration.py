"""What the commands for tenants, plans, keys and usage share: the store for one act, limits and times as words."""

import asyncio
import json
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from axon.domain.tenant import ID_RULE, NAME_RULE, Limits, Tier, check_id, check_name, wrong_limit
from axon.errors import InvalidInput, Misconfigured, NotFound

if TYPE_CHECKING:
    from axon.bootstrap.administration import Administration
    from axon.settings import Settings

T = TypeVar("T")
NAMES = tuple(each.name for each in fields(Limits))
_FRACTIONS = ("requests_per_minute", "tokens_per_minute", "weight", "kv_share", "reserved")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")

LimitFlags = Annotated[
    list[str] | None,
    typer.Option("--limit", metavar="NAME=VALUE", help=f"A limit; repeatable. Names: {', '.join(NAMES)}."),
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
    revokes: bool = False,
) -> T:
    """Opens the store for one act, which has to be there unless the act makes something. Quietly: stdout is for the
    answer."""
    from axon.bootstrap.administration import open_administration

    async def run() -> T:
        async with open_administration(settings, makes=makes, revokes=revokes) as admin:
            return await act(admin)

    quiet(settings)
    return asyncio.run(run())


def change_in_store(
    settings: "Settings", change: Callable[["Administration"], Awaitable[T]], *, makes: bool = False
) -> T:
    """Does what may change a tenant's reserve, and warns where more is promised now than there is."""

    async def act(admin: "Administration") -> T:
        done = await change(admin)
        await warn_of_reserves(admin)
        return done

    return in_store(settings, act, makes=makes)


def show_done(sentence: str, facts: dict[str, Any], *, as_json: bool) -> None:
    """What a command has done: the object in the words of the API, or a sentence."""
    show_json(facts) if as_json else print(sentence)


def show_listed(
    listed: Sequence[dict[str, Any]], columns: Sequence[str], rows: Sequence[Sequence[str]], *, as_json: bool
) -> None:
    """A list of objects in the words of the API, or as a table; nothing of a table without rows."""
    if as_json:
        show_json(list(listed))
    elif rows:
        from axon.console.tables import print_table

        print_table(columns, rows)


def quiet(settings: "Settings") -> None:
    """Nothing but warnings on stderr."""
    from axon.telemetry import logs

    logs.configure(replace(settings.log, level="warning"))


def changed(limits: Limits, assignments: Sequence[str] | None, unset: Sequence[str] | None = None) -> Limits:
    """The limits with what the flags say."""
    values: dict[str, Any] = {}
    for each in assignments or ():
        name, equals, text = each.partition("=")
        if not equals:
            raise Misconfigured(f"--limit {each}: write NAME=VALUE, such as --limit weight=2.")
        _add(values, "--limit", name.strip(), _value(_known(name.strip()), text.strip()))
        if wrong := wrong_limit(Limits(**{name.strip(): values[name.strip()]})):
            raise Misconfigured(f"--limit {each}: it must be {wrong[1]}.")
    for name in unset or ():
        _add(values, "--unset", _known(name.strip()), None)
    return replace(limits, **values)


def check_id_flag(flag: str, text: str) -> None:
    """Raises for what can name neither a tenant nor a plan."""
    try:
        check_id(text)
    except InvalidInput:
        raise Misconfigured(f"{flag} {text!r}: it must have {ID_RULE}.") from None


def check_name_flag(name: str) -> None:
    """Raises for what --name cannot be."""
    try:
        check_name(name)
    except InvalidInput:
        raise Misconfigured(f"--name {name!r}: it must be {NAME_RULE}.") from None


async def check_known(admin: "Administration", tenant: str, now: float) -> None:
    """Raises ``NotFound`` for a tenant that is not there and has left nothing behind."""
    try:
        await admin.tenancy.tenant(tenant)
    except NotFound:
        left = await admin.keyring.all(tenant=tenant) or await admin.tenancy.usage(since=0.0, until=now, tenant=tenant)
        if not left:
            raise


async def warn_of_reserves(admin: "Administration") -> None:
    """A line where more is promised than there is."""
    reserved = await admin.tenancy.reserved()
    if reserved > 1 + 1e-9:
        print(
            f"axon: {reserved:.4g} of every shared worker's slots is reserved in all, which is more than 1: when "
            "everybody asks, each gets its reserve's part of the whole, and nobody else a slot.",
            file=sys.stderr,
        )


def seconds(text: str, flag: str) -> float:
    """A duration as people write it."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise Misconfigured(f"{flag} {text}: write a number and s, m, h, d or w, such as 30d or 90m.")
    return float(found[1]) * _UNITS[found[2]]


def moment(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def whole_second(at: float | None) -> int | None:
    """As the API says it."""
    return None if at is None else int(at)


def limit_facts(limits: object) -> dict[str, Any]:
    """Those that are set, or all that hold."""
    said = {name: getattr(limits, name) for name in NAMES}
    return {name: value for name, value in said.items() if value is not None}


def limit_words(limits: Limits) -> str:
    """On one line."""
    return " ".join(f"{name}={shown(value)}" for name, value in limit_facts(limits).items())


def shown(value: object) -> str:
    """A limit as the flag takes it."""
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def show_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def _known(name: str) -> str:
    if name not in NAMES:
        from difflib import get_close_matches

        close = get_close_matches(name, NAMES, n=1)
        meant = f" Did you mean {close[0]}?" if close else f" There are: {', '.join(NAMES)}."
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

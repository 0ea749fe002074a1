"""What the commands for tenants, plans, keys and usage share: the store for one act, limits and times as words."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from axon.domain.tenant import Limits, Tier
from axon.errors import Misconfigured

if TYPE_CHECKING:
    from axon.bootstrap.accounts import Accounts
    from axon.settings import Settings

T = TypeVar("T")
NAMES = tuple(each.name for each in fields(Limits))
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


def in_store(settings: "Settings", act: Callable[["Accounts"], Awaitable[T]], *, revokes: bool = False) -> T:
    """Opens the store for one act. Quietly: stdout is for the answer."""
    from axon.bootstrap.accounts import open_accounts

    async def run() -> T:
        async with open_accounts(settings, revokes=revokes) as accounts:
            return await act(accounts)

    quiet(settings)
    return asyncio.run(run())


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
        values[_known(name.strip())] = _value(name.strip(), text.strip())
    values |= {_known(name): None for name in unset or ()}
    return replace(limits, **values)


def seconds(text: str, flag: str) -> float:
    """A duration as people write it."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise Misconfigured(f"{flag} {text}: write a number and s, m, h, d or w, such as 30d or 90m.")
    return float(found[1]) * _UNITS[found[2]]


def moment(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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


def _value(name: str, text: str) -> object:
    try:
        match name:
            case "highest_tier":
                return Tier(text)
            case "models":
                return tuple(model.strip() for model in text.split(",")) if text else ()
            case "pool":
                return text
            case "requests_per_minute" | "tokens_per_minute" | "weight" | "kv_share" | "reserved":
                return float(text)
            case _:
                return int(text)
    except ValueError:
        kind = f"one of {', '.join(Tier)}" if name == "highest_tier" else "a number"
        raise Misconfigured(f"--limit {name}={text}: the value must be {kind}.") from None

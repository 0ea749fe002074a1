"""Flags of ``axon deployments`` for a deployment's autoscaler, and how they are read and shown. Knows no store."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from axon.console.administration import seconds
from axon.errors import Misconfigured

if TYPE_CHECKING:
    from axon.domain.registry.scaling import Scaling, Window

Utilisation = Annotated[
    float | None, typer.Option(help="Part of the slots that shall be in use, 0.1 to 0.94; 0 for control's own aim.")
]
TargetWait = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time in which a waiting request shall be taken; 0s for control's.")
]
TtftTarget = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time to the first token; 0s for control's own target.")
]
ItlTarget = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Time between two tokens, such as 0.05s; 0s for control's own target."),
]
PricePerHour = Annotated[float | None, typer.Option(help="Price of one replica for an hour.")]
Currency = Annotated[str | None, typer.Option(help="Currency of the price, three capital letters; USD by default.")]
CostPerHour = Annotated[
    float | None, typer.Option(help="Ceiling of what its replicas may cost in an hour together; 0 for none.")
]
AtLeast = Annotated[
    list[str] | None,
    typer.Option(
        "--at-least",
        metavar="'N HH:MM-HH:MM [DAYS] [ZONE]'",
        help="A minimum by the clock, such as '4 08:00-20:00 mon-fri Europe/Berlin'; repeatable. Every day and UTC "
        "unless you say so.",
    ),
]


def said_scaling(
    *,
    utilisation: float | None,
    target_wait: str | None,
    ttft_target: str | None,
    itl_target: str | None,
    price_per_hour: float | None,
    currency: str | None,
    cost_per_hour: float | None,
    at_least: Sequence[str] | None,
    no_at_least: bool = False,
) -> dict[str, Any]:
    """The settings of the autoscaler that were given, by their names in the registry."""
    if at_least and no_at_least:
        raise Misconfigured("Say --at-least or --no-at-least, not both.")
    values: dict[str, Any] = {
        "utilisation": utilisation,
        "target_wait_s": _time(target_wait, "--target-wait"),
        "ttft_target_s": _time(ttft_target, "--ttft-target"),
        "itl_target_s": _time(itl_target, "--itl-target"),
        "price_per_h": price_per_hour,
        "currency": currency,
        "cost_per_h": cost_per_hour,
        "floors": () if no_at_least else at_least and tuple(map(_window, at_least)),
    }
    return {name: value for name, value in values.items() if value is not None}


def scaling_rows(scaling: "Scaling") -> list[tuple[str, str]]:
    """Rows of a table: what was set, and the ceiling in cost."""
    targets = [
        (name, f"{getattr(scaling, name):g}" if getattr(scaling, name) else "control's")
        for name in ("utilisation", "target_wait_s", "ttft_target_s", "itl_target_s")
    ]
    ceiling = f"{scaling.cost_per_h:g}: {scaling.payable} replicas" if scaling.payable is not None else "-"
    floors = [("at least", _shown(each)) for each in scaling.floors] or [("at least", "-")]
    return [*targets, ("price_per_h", f"{scaling.price_per_h:g} {scaling.currency}"), ("cost_per_h", ceiling), *floors]


def _window(text: str) -> "Window":
    """A minimum as it is written on the command line; the registry's rules check its parts."""
    from axon.domain.registry.scaling import Window

    first, *rest = text.split()[:5] or [""]
    times = rest.pop(0) if rest and rest[0][0].isdigit() else "00:00-24:00"
    days = _days(rest.pop(0)) if rest and "/" not in rest[0] and rest[0].islower() else ()
    zone = rest.pop(0) if rest else "UTC"
    start, dash, end = times.partition("-")
    if not first.isdecimal() or not dash or rest:
        raise Misconfigured(
            f"--at-least '{text}': write a number of replicas, times and if need be days and a time zone, such as "
            "'4 08:00-20:00 mon-fri Europe/Berlin'."
        )
    return Window(replicas=int(first), start=start, end=end, days=days, zone=zone)


def _days(text: str) -> tuple[str, ...]:
    """``mon-fri`` or ``sat,sun`` as days; what is no day stays as it is, and the registry refuses it."""
    from axon.domain.registry.scaling import DAYS

    found: list[str] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if dash and first in DAYS and last in DAYS:
            start = DAYS.index(first)
            num = (DAYS.index(last) - start) % len(DAYS) + 1
            found += [DAYS[(start + step) % len(DAYS)] for step in range(num)]
        else:
            found.append(part)
    return tuple(found)


def _shown(floor: "Window") -> str:
    days = f" {','.join(floor.days)}" if floor.days else ""
    return f"{floor.replicas} {floor.start}-{floor.end}{days} {floor.zone}"


def _time(text: str | None, flag: str) -> float | None:
    return None if text is None else seconds(text, flag)

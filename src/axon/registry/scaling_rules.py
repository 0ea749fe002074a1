"""Which settings of a deployment's autoscaler can hold together. Pure; each check raises what is wrong by its field."""

from axon.domain.registry.deployment import Deployment
from axon.domain.registry.scaling import DAYS, Scaling, Window, minutes, zone_of
from axon.errors import InvalidInput

MAX_FLOORS = 16
LEAST_UTILISATION, MOST_UTILISATION = 0.1, 0.94
_TARGETS = ("target_wait_s", "ttft_target_s", "itl_target_s")
_MOST_TARGET_S = 3600.0
_MOST_MONEY = 1e6


def check_scaling(deployment: Deployment) -> None:
    """Raises ``InvalidInput`` for the first setting that cannot work."""
    scaling = deployment.scaling
    aim = scaling.utilisation
    if not (aim == 0 or LEAST_UTILISATION <= aim <= MOST_UTILISATION):
        _refuse("utilisation", f"must be {LEAST_UTILISATION} to {MOST_UTILISATION}, or 0 for control's own aim.")
    for name in _TARGETS:
        target = getattr(scaling, name)
        if not (target == 0 or 0.001 <= target <= _MOST_TARGET_S):
            _refuse(name, f"must be 0.001 to {_MOST_TARGET_S:g} seconds, or 0 for control's own target.")
    for name in ("price_per_h", "cost_per_h"):
        if not 0 <= getattr(scaling, name) <= _MOST_MONEY:
            _refuse(name, f"must be at least 0 and at most {_MOST_MONEY:.0f}.")
    if not (len(scaling.currency) == 3 and scaling.currency.isascii() and scaling.currency.isupper()):
        _refuse("currency", "must be three capital letters, such as USD.")
    if len(scaling.floors) > MAX_FLOORS:
        _refuse("floors", f"may have at most {MAX_FLOORS} minimums.")
    for floor in scaling.floors:
        _check_floor(floor, deployment.max_replicas)
    _check_ceiling(deployment, scaling)


def _check_floor(floor: Window, max_replicas: int) -> None:
    if not 1 <= floor.replicas <= max_replicas:
        _refuse("floors.replicas", f"must be at least 1 and at most max_replicas, which is {max_replicas}.")
    for name in ("start", "end"):
        if minutes(getattr(floor, name)) is None:
            _refuse(f"floors.{name}", f"must be a time from 00:00 to 24:00 as HH:MM, not '{getattr(floor, name)}'.")
    if minutes(floor.start) == minutes(floor.end):
        _refuse("floors.end", "must differ from 'start'; a whole day is from 00:00 to 24:00.")
    if minutes(floor.start) == 24 * 60:
        _refuse("floors.start", "must be before 24:00.")
    if any(day not in DAYS for day in floor.days) or len(set(floor.days)) < len(floor.days):
        _refuse("floors.days", f"must be days of the week, each once: {', '.join(DAYS)}.")
    if len(floor.zone) > 64 or zone_of(floor.zone) is None:
        _refuse("floors.zone", f"must be a time zone such as UTC or Europe/Berlin; '{floor.zone[:64]}' is none here.")


def _check_ceiling(deployment: Deployment, scaling: Scaling) -> None:
    if scaling.cost_per_h > 0 and not scaling.price_per_h > 0:
        _refuse("price_per_h", "must be above 0 where 'cost_per_h' is: the ceiling is counted in replicas by it.")
    least = max([1, deployment.min_replicas, *(floor.replicas for floor in scaling.floors)])
    if scaling.payable is not None and scaling.payable < least:
        _refuse(
            "cost_per_h",
            f"pays for {scaling.payable} replicas at {scaling.price_per_h:g} each, and the minimum is {least}: it must "
            f"be at least {least * scaling.price_per_h:g}.",
        )


def _refuse(name: str, sentence: str) -> None:
    raise InvalidInput(f"'scaling.{name}' {sentence}", param=f"scaling.{name}")

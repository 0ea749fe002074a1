"""A fleet that follows its load survives what goes wrong, and each broken rule of its autoscaler is noticed."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from axon.control import scaling
from axon.control.fitting import FittedTargets
from axon.control.replica_ledger import LedgeredTargets, _use
from axon.control.scaling import ScaledTargets
from axon.domain.billing.replica_use import UseKind
from axon.domain.fleet.desired import meant
from axon.domain.fleet.replica import Group, LaunchState
from axon.domain.fleet.sight import Sight, Target
from axon.domain.presence import Presence
from axon.domain.scaling import decide
from axon.domain.scaling.intake import Taken
from axon.domain.scaling.memory import Memory
from axon.domain.scaling.policy import ScalingPolicy
from tests.sim import test_launching
from tests.sim.launching import run
from tests.sim.scaled import FittedWorld, ScaledWorld
from tests.sim.search import report

SCHEDULES = 15
_watch, _call, _in_place = scaling._watch, ScaledTargets.__call__, FittedTargets._in_place


def workers_that_come_back_read_as_a_crowd() -> contextlib.AbstractContextManager[Any]:
    """All that a worker ever served counts as new when its presence was lost for a look."""

    def watch(watched: Any, presences: Sequence[Presence]) -> None:
        for each in presences:
            watched.seen.setdefault(each.incarnation, Taken())
        _watch(watched, presences)

    return patch.object(scaling, "_watch", watch)


def lost_presences_read_as_no_load() -> contextlib.AbstractContextManager[Any]:
    """A load that nobody tells of is taken for none, and what is too many goes at once."""

    async def call(self: ScaledTargets, sight: Sight) -> Mapping[Group, Target]:
        found = await _call(self, sight)
        return (
            found
            if sight.presences
            else {group: replace(each, count=min(each.count, 1)) for group, each in found.items()}
        )

    return patch.object(ScaledTargets, "__call__", call)


def workers_go_at_once() -> contextlib.AbstractContextManager[Any]:
    """No time passes between a load that falls and the orders to stop: a leader without a memory forgets the load."""

    def may_go_down(policy: ScalingPolicy, memory: Memory, present: int, now: float, hold_s: float) -> bool:
        return True

    return patch.object(decide, "_may_go_down", may_go_down)


def a_later_leader_bills_another() -> contextlib.AbstractContextManager[Any]:
    """A start that nobody asked for is billed to whoever comes first."""
    return patch.object(LedgeredTargets, "_look_at_starts", _bill_everything)


async def _bill_everything(self: LedgeredTargets, sight: Sight) -> None:
    for each in sight.launched or ():
        of = meant(sight.snapshot, each.name.group)
        if of is not None:
            self._owe([_use(UseKind.COLD_START, "acme", each, of, began=each.since, until=self._clock.now())])


def what_drains_needs_no_memory() -> contextlib.AbstractContextManager[Any]:
    """A replica is started in the memory of one that has not ended."""

    def in_place(self: FittedTargets, sight: Sight, *others: Any) -> Mapping[Group, Target]:
        running = [each for each in sight.launched or () if each.state is not LaunchState.STOPPING]
        return _in_place(self, replace(sight, launched=running), *others)

    return patch.object(FittedTargets, "_in_place", in_place)


MUTANTS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    mutant.__name__: mutant
    for mutant in (
        test_launching.flushed_presences_read_as_zero_replicas,
        test_launching.an_old_leaders_orders_accepted,
        test_launching.unknown_demand_read_as_none,
        workers_that_come_back_read_as_a_crowd,
        lost_presences_read_as_no_load,
        workers_go_at_once,
        a_later_leader_bills_another,
    )
}


def test_no_schedule_breaks_a_promise() -> None:
    for seed in range(SCHEDULES):
        outcome = run(seed, ScaledWorld)
        assert not outcome.violation, report(outcome)


FIRST = {"workers_go_at_once": 180}
"""The seed to begin with, of mutants that the first seeds do not find."""


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_is_found(name: str) -> None:
    first = FIRST.get(name, 0)
    seeds = range(first, first + 4 * SCHEDULES)
    with MUTANTS[name]():
        assert any(run(seed, ScaledWorld).violation for seed in seeds), f"{name} went unnoticed"


def test_no_schedule_starts_a_replica_without_room_for_it() -> None:
    for seed in range(SCHEDULES):
        outcome = run(seed, FittedWorld)
        assert not outcome.violation, report(outcome)


def test_a_start_without_room_is_found() -> None:
    with what_drains_needs_no_memory():
        assert any(run(seed, FittedWorld).violation for seed in range(4 * SCHEDULES))


def test_a_seed_gives_the_same_history_again() -> None:
    assert run(3, ScaledWorld).events == run(3, ScaledWorld).events

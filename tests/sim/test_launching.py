"""A fleet that runs itself survives what goes wrong, and each broken rule is noticed."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import pytest

from axon.adapters.launch.memory import MemoryReplicas
from axon.domain.fleet import reconcile
from axon.domain.fleet.demand import Demand
from axon.domain.fleet.replica import Group, Launched, ReplicaName
from axon.domain.fleet.sight import Sight
from tests.sim.launching import run
from tests.sim.search import report

SCHEDULES = 25
_serving, _demand_of = reconcile._serving, Sight.demand_of


def flushed_presences_read_as_zero_replicas() -> contextlib.AbstractContextManager[Any]:
    def serving(own: Sequence[Launched], version: str, ready: frozenset[ReplicaName]) -> tuple[Launched, ...]:
        return tuple(each for each in _serving(own, version, ready) if each.name in ready)

    return patch.object(reconcile, "_serving", serving)


def an_old_leaders_orders_accepted() -> contextlib.AbstractContextManager[Any]:
    return patch.object(MemoryReplicas, "take_term", lambda self, term: None)


def unknown_demand_read_as_none() -> contextlib.AbstractContextManager[Any]:
    def demand_of(self: Sight, group: Group) -> Demand | None:
        return _demand_of(self, group) or Demand(waiting=0, unfinished=0)

    return patch.object(Sight, "demand_of", demand_of)


MUTANTS: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    mutant.__name__: mutant
    for mutant in (
        flushed_presences_read_as_zero_replicas,
        an_old_leaders_orders_accepted,
        unknown_demand_read_as_none,
    )
}


def test_no_schedule_breaks_a_promise() -> None:
    for seed in range(SCHEDULES):
        outcome = run(seed)
        assert not outcome.violation, report(outcome)


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_rule_is_found(name: str) -> None:
    with MUTANTS[name]():
        assert any(run(seed).violation for seed in range(2 * SCHEDULES)), f"{name} went unnoticed"


def test_a_seed_gives_the_same_history_again() -> None:
    assert run(3).events == run(3).events

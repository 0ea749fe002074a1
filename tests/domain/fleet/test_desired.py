"""What the registry wants to run without an autoscaler."""

from dataclasses import replace
from typing import Any

import pytest

from axon.domain.fleet.demand import Demand
from axon.domain.fleet.desired import Idle, least, wanted
from axon.domain.fleet.replica import Group
from axon.domain.fleet.sight import Target
from axon.domain.registry.deployment import Deployment, MemberState
from axon.domain.registry.rollout import RolloutState
from axon.domain.registry.scaling import Scaling, Window
from axon.domain.registry.version import EngineSettings
from tests.domain.fleet.builders import NOBODY, ONE, TWO, Fleet, deployed, registry
from tests.domain.registry.builders import rollout

BOTH = (MemberState.READY, MemberState.READY)
COLD: dict[str, Any] = {"min_replicas": 0, "idle_s": 60.0}


def counts(fleet: Fleet, idle: Idle | None = None) -> dict[Group, int]:
    targets, _ = least(fleet.sight(), idle or Idle(), now=fleet.now, at=fleet.now)
    return {group: target.count for group, target in targets.items()}


def of(deployment: Deployment, **changes: object) -> Fleet:
    return Fleet(snapshot=registry(deployment), **changes)  # type: ignore[arg-type]


def test_a_deployment_has_its_least_number_of_replicas() -> None:
    assert counts(of(deployed(min_replicas=3))) == {ONE: 3}


def test_two_versions_have_one_each_and_the_rest_by_their_parts_of_new_sessions() -> None:
    assert counts(of(deployed(states=BOTH, min_replicas=1))) == {ONE: 1, TWO: 1}
    going = deployed(states=BOTH, min_replicas=8, rollout=rollout(share=2500))
    assert counts(of(going)) == {ONE: 6, TWO: 2}


def test_a_version_on_its_way_out_has_no_target() -> None:
    assert counts(of(deployed(states=(MemberState.READY, MemberState.CLOSED)))) == {ONE: 1}


def test_a_cold_deployment_stays_cold_until_somebody_waits() -> None:
    fleet = of(deployed(**COLD))
    assert counts(fleet) == {ONE: 0}
    fleet.demand = {ONE: Demand(waiting=1)}
    assert counts(fleet) == {ONE: 1}


def test_a_hot_deployment_is_never_cold() -> None:
    assert counts(of(deployed(**COLD, hot=True))) == {ONE: 1}


def test_a_minimum_by_the_clock_keeps_a_cold_deployment_warm_while_it_holds() -> None:
    morning = Scaling(floors=(Window(replicas=3, start="00:10", end="00:20"),))
    fleet = of(deployed(**COLD, scaling=morning), now=11 * 60.0)
    assert counts(fleet) == {ONE: 3}
    targets, _ = least(fleet.sight(), Idle(), now=0.0, at=fleet.now)
    assert targets[ONE].reason == "its deployment asks for 3 at least at this time of the day"
    fleet.now = 20 * 60.0
    assert counts(fleet) == {ONE: 0}


def test_a_demand_that_is_not_known_keeps_what_runs_and_starts_nothing() -> None:
    fleet = of(deployed(**COLD), demand={})
    assert counts(fleet) == {ONE: 0}
    fleet.run(ONE.replica(0))
    assert counts(fleet) == {ONE: 1}


def test_it_goes_cold_when_it_was_idle_for_its_time_and_not_before() -> None:
    fleet = of(deployed(**COLD))
    fleet.run(ONE.replica(0))
    idle = Idle()
    for seconds, demand, wants in ((0, 0, 1), (59, 0, 1), (0, 1, 1), (59, 0, 1), (59, 0, 1), (2, 0, 0)):
        fleet.now += seconds
        fleet.demand = {ONE: Demand(waiting=0, unfinished=demand)}
        targets, idle = least(fleet.sight(), idle, now=fleet.now, at=fleet.now)
        assert targets[ONE].count == wants
    assert targets[ONE] == Target(0, "idle for 60 s")


def test_time_with_a_demand_that_is_not_known_does_not_count_as_idle() -> None:
    fleet = of(deployed(**COLD))
    fleet.run(ONE.replica(0))
    idle = Idle()
    for demand, wants in ((Demand(waiting=None, unfinished=0), 1), (Demand(waiting=0, unfinished=0), 1)):
        fleet.now, fleet.demand = fleet.now + 100.0, {ONE: demand}
        targets, idle = least(fleet.sight(), idle, now=fleet.now, at=fleet.now)
        assert targets[ONE].count == wants


def test_a_deployment_without_an_idle_time_never_goes_cold() -> None:
    assert counts(of(deployed(min_replicas=0, idle_s=0.0))) == {ONE: 1}


def test_a_version_that_is_rolled_out_is_warm_also_where_its_deployment_is_cold() -> None:
    going = deployed(states=BOTH, rollout=rollout(state=RolloutState.WAITING), **COLD)
    assert counts(of(going, demand=NOBODY)) == {ONE: 0, TWO: 1}
    assert counts(of(replace(going, rollout=rollout(state=RolloutState.ROLLED_BACK)))) == {ONE: 0, TWO: 0}


@pytest.mark.parametrize(("ranks", "number"), [("4", 4), ("many", 1)])
def test_a_spec_has_what_a_replica_needs(ranks: str, number: int) -> None:
    snapshot = registry(deployed(memory_bytes=7, devices=2, pool="gold"))
    version = replace(snapshot.versions["small@v1"], settings=EngineSettings(more=(("tensor_parallel", ranks),)))
    spec = wanted(replace(snapshot, versions={version.id: version}))[Group("small", "", "gold")].spec
    assert (spec.memory_bytes, spec.devices, spec.ranks, spec.label) == (7, 2, number, "v1")

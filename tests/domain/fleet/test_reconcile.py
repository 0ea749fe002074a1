"""The reconciler: what it starts and stops, and what it never does."""

from dataclasses import replace

import pytest

from axon.domain.fleet.demand import Demand
from axon.domain.fleet.reconcile import Ensure, Memory, Pace, Stop, reconcile
from axon.domain.fleet.replica import Group, LaunchState
from axon.domain.fleet.sight import Target
from axon.domain.registry.deployment import MemberState
from tests.domain.fleet.builders import NOBODY, ONE, TWO, Fleet, deployed, launched, present, registry, to

AT_ONCE = Pace(hold_s=0.0)
FAILED, CLOSED = MemberState.FAILED, MemberState.CLOSED


def settled(*names: object, **changes: object) -> Fleet:
    """A fleet whose leader has looked for long enough to stop what is too much."""
    fleet = Fleet(pace=AT_ONCE, **changes)  # type: ignore[arg-type]
    fleet.run(*names)  # type: ignore[arg-type]
    return fleet


def names(orders: tuple[Ensure | Stop, ...], kind: type) -> list[str]:
    return [str(order.name) for order in orders if isinstance(order, kind)]


def test_missing_replicas_are_ensured_from_the_lowest_index_with_the_reason() -> None:
    fleet = settled(ONE.replica(1))
    decided = fleet.look(to(3))
    assert names(decided.orders, Ensure) == ["small#-0", "small#-2"]
    assert decided.orders[0].reason == "3 wanted (the test says so), 1 there"
    first = decided.orders[0]
    assert isinstance(first, Ensure)
    assert (first.spec.version, first.spec.label) == ("small@v1", "v1")


def test_of_too_many_replicas_the_highest_are_stopped_by_their_incarnation() -> None:
    fleet = settled(*(ONE.replica(index) for index in range(4)))
    decided = fleet.look(to(2))
    assert names(decided.orders, Stop) == ["small#-3", "small#-2"]
    last = decided.orders[0]
    assert isinstance(last, Stop)
    assert last.incarnation == "4"


def test_a_replica_that_serves_nobody_goes_before_one_that_does() -> None:
    fleet = settled(ONE.replica(1))
    fleet.replicas[ONE.replica(0)] = launched(ONE.replica(0), LaunchState.WAITING)
    assert names(fleet.look(to(1)).orders, Stop) == ["small#-0"]


def test_a_draining_replica_is_missing_for_need_and_its_name_is_not_given_again() -> None:
    fleet = settled(ONE.replica(1))
    fleet.replicas[ONE.replica(0)] = launched(ONE.replica(0), LaunchState.STOPPING)
    assert names(fleet.look(to(2)).orders, Ensure) == ["small#-2"]


def test_draining_replicas_count_against_the_most_that_a_deployment_may_have() -> None:
    fleet = settled(ONE.replica(0), snapshot=registry(deployed(max_replicas=2)))
    fleet.replicas[ONE.replica(1)] = launched(ONE.replica(1), LaunchState.STOPPING)
    decided = fleet.look(to(2))
    assert not decided.orders
    assert decided.groups[0].held == "its deployment has its 2 replicas, with those that drain"


def test_a_deployment_beyond_its_most_gains_none_when_one_of_too_many_is_gone() -> None:
    fleet = settled(ONE.replica(0), ONE.replica(1), snapshot=registry(deployed(max_replicas=2)))
    fleet.replicas[ONE.replica(2)] = launched(ONE.replica(2), LaunchState.STOPPING)
    decided = fleet.look(to(2))
    assert not decided.orders
    assert decided.groups[0].more == 0


def test_a_replica_on_a_lost_machine_is_replaced_under_another_name() -> None:
    fleet = settled(ONE.replica(0), snapshot=registry(deployed(max_replicas=2)))
    fleet.replicas[ONE.replica(1)] = launched(ONE.replica(1), LaunchState.LOST)
    assert names(fleet.look(to(2)).orders, Ensure) == ["small#-2"]


def test_without_the_launchers_list_nothing_is_ordered_and_nothing_forgotten() -> None:
    fleet = settled(ONE.replica(0))
    fleet.look(to(1))
    decided = reconcile(replace(fleet.sight(), launched=None), to(5), fleet.memory, now=fleet.now, pace=AT_ONCE)
    assert not decided.orders
    assert decided.memory == fleet.memory
    assert "no list" in decided.held


def test_a_worker_that_nobody_launched_is_neither_counted_nor_stopped() -> None:
    fleet = settled()
    fleet.present = {"host-0", "small#-7"}
    assert names(fleet.look(to(1)).orders, Ensure) == ["small#-0"]
    assert not fleet.look(to(0)).orders


@pytest.mark.parametrize("state", [FAILED, CLOSED])
def test_replicas_of_a_version_on_its_way_out_are_drained_and_never_started(state: MemberState) -> None:
    snapshot = registry(deployed(states=(MemberState.READY, state)))
    fleet = settled(TWO.replica(0), snapshot=snapshot)
    decided = fleet.look({**to(0), **to(3, TWO)})
    assert names(decided.orders, Stop) == ["small~b#-0"]
    assert f"its version is {state}" in decided.orders[0].reason
    fleet.replicas.clear()
    assert not fleet.look({**to(0), **to(3, TWO)}).orders


def test_the_last_replica_of_a_closed_version_stays_while_its_turns_run() -> None:
    snapshot = registry(deployed(states=(MemberState.READY, CLOSED)))
    fleet = settled(TWO.replica(0), TWO.replica(1), snapshot=snapshot, demand={**NOBODY, TWO: Demand(unfinished=1)})
    assert names(fleet.look({}).orders, Stop) == ["small~b#-1"]


def test_a_replica_that_the_registry_does_not_know_is_stopped_at_the_third_look() -> None:
    gone = Group("gone").replica(0)
    fleet = settled(ONE.replica(0))
    fleet.replicas[gone] = launched(gone, version="gone@v1")
    assert [names(fleet.look(to(1)).orders, Stop) for _ in range(3)] == [[], [], ["gone#-0"]]


def test_a_letter_given_again_first_frees_the_names_of_its_last_version() -> None:
    fleet = settled()
    old = launched(ONE.replica(0), version="small@v0")
    fleet.replicas[old.name] = old
    assert [names(fleet.look(to(0)).orders, Stop) for _ in range(3)] == [[], [], ["small#-0"]]
    fleet.now += 1.0
    assert names(fleet.look(to(1)).orders, Ensure) == ["small#-1"]


def test_a_replica_that_is_known_again_is_counted_anew() -> None:
    fleet = settled(ONE.replica(0))
    for _ in range(4):
        fleet.snapshot = registry()
        fleet.look({})
        assert not fleet.look({}).orders
        fleet.snapshot = registry(deployed())
        assert not fleet.look(to(1)).orders


def test_a_new_leader_stops_nothing_for_three_presence_lifetimes() -> None:
    fleet = Fleet()
    fleet.run(ONE.replica(0), ONE.replica(1))
    assert not fleet.look(to(1)).orders
    fleet.now += 8.9
    held = fleet.look(to(1))
    assert not held.orders
    assert "presences may have been lost" in held.held
    assert held.groups[0].held == held.held
    fleet.now += 0.2
    assert names(fleet.look(to(1)).orders, Stop) == ["small#-1"]


@pytest.mark.parametrize("what", ["another run of live", "half of the presences missing"])
def test_when_presences_may_be_lost_replicas_start_and_none_stops(what: str) -> None:
    fleet = Fleet()
    fleet.run(*(ONE.replica(index) for index in range(4)))
    fleet.settle(to(4), looks=20)
    if what == "another run of live":
        fleet.run_id, fleet.present = "run-2", set()
    else:
        fleet.present = set(sorted(fleet.present)[:2])
    fleet.now += 1.0
    assert not fleet.look(to(1)).orders
    fleet.now += 8.0
    decided = fleet.look(to(5))
    assert names(decided.orders, Ensure) == ["small#-4"]
    fleet.now += 1.5
    assert len(names(fleet.look(to(1)).orders, Stop)) == 2


def test_one_of_three_presences_missing_holds_nothing_up() -> None:
    fleet = Fleet()
    fleet.run(*(ONE.replica(index) for index in range(3)))
    fleet.settle(to(3), looks=20)
    fleet.present.discard("small#-1")
    fleet.now += 1.0
    assert names(fleet.look(to(2)).orders, Stop) == ["small#-1"]


def test_while_presences_cannot_be_read_nothing_is_stopped() -> None:
    fleet = settled(ONE.replica(0), ONE.replica(1))
    fleet.look(to(2))
    blind = replace(fleet.sight(), presences=None)
    decided = reconcile(blind, to(1), fleet.memory, now=fleet.now + 60, pace=AT_ONCE)
    assert not decided.orders
    assert "not known" in decided.held


def test_the_last_replica_stays_while_somebody_waits_or_nobody_knows() -> None:
    fleet = settled(ONE.replica(0), ONE.replica(1), demand={ONE: Demand(waiting=2)})
    fleet.settle(to(0), looks=5)
    assert fleet.count() == 1
    fleet.demand = {}
    fleet.settle(to(0), looks=5)
    assert fleet.count() == 1
    fleet.demand = NOBODY
    fleet.settle(to(0), looks=5)
    assert fleet.count() == 0


def test_a_cold_group_starts_when_somebody_waits_whatever_the_target_and_not_on_a_guess() -> None:
    fleet = settled(demand={})
    assert not fleet.look(to(0)).orders
    fleet.demand = {ONE: Demand(waiting=1)}
    decided = fleet.look(to(0))
    assert names(decided.orders, Ensure) == ["small#-0"]
    assert "1 jobs wait" in decided.orders[0].reason


def test_a_group_without_a_target_keeps_what_it_has() -> None:
    fleet = settled(ONE.replica(0), ONE.replica(1))
    decided = fleet.look({})
    assert not decided.orders
    assert (decided.groups[0].wanted, decided.groups[0].reason) == (2, "nothing says how many")


def test_a_group_of_a_pool_that_its_deployment_has_left_is_drained() -> None:
    gold = Group("small", "", "gold")
    fleet = settled(gold.replica(0), demand={**NOBODY, gold: Demand(waiting=0, unfinished=0)})
    assert names(fleet.look(to(0)).orders, Stop) == ["small#gold-0"]


def test_a_deployment_has_at_most_its_replicas_but_one_of_each_version() -> None:
    snapshot = registry(deployed(states=(MemberState.READY, MemberState.READY), max_replicas=3))
    fleet = settled(snapshot=snapshot)
    fleet.settle({**to(9), **to(9, TWO)}, looks=20)
    assert sorted((fleet.count(ONE), fleet.count(TWO))) == [1, 2]
    fleet.snapshot = registry(replace(snapshot.deployments["small"], max_replicas=1))
    fleet.settle({**to(9), **to(9, TWO)}, looks=20)
    assert (fleet.count(ONE), fleet.count(TWO)) == (1, 1)


def test_the_pace_bounds_what_one_look_and_one_group_change() -> None:
    many = [replace(deployed(max_replicas=50), name=f"d{index}") for index in range(6)]
    fleet = settled(snapshot=registry(*many))
    targets = {Group(each.name): to(50)[ONE] for each in many}
    decided = fleet.look(targets)
    assert len(decided.orders) == 8
    fleet.carry_out(decided)
    fleet.now += 0.5
    again = fleet.look(targets)
    assert {order.name.group for order in again.orders}.isdisjoint({order.name.group for order in decided.orders})
    fleet.carry_out(again)
    fleet.now += 0.6
    assert len(fleet.look(targets).orders) == 8


def test_a_large_fleet_changes_by_a_part_of_it_at_a_look() -> None:
    fleet = settled(snapshot=registry(deployed(max_replicas=1000)))
    fleet.run(*(ONE.replica(index) for index in range(200)))
    assert len(fleet.look(to(400)).orders) == 20
    fleet.now += 1.0
    assert len(fleet.look(to(1)).orders) == 20


def test_groups_take_turns_when_a_look_cannot_order_all() -> None:
    many = [replace(deployed(max_replicas=50), name=f"d{index}") for index in range(12)]
    fleet = settled(snapshot=registry(*many))
    targets = {Group(each.name): to(50)[ONE] for each in many}
    ordered = {order.name.group for decided in (fleet.settle(targets, looks=3)) for order in decided.orders}
    assert ordered == set(targets)


def test_the_state_of_a_group_counts_what_starts_what_is_ready_and_what_drains() -> None:
    fleet = settled(ONE.replica(0), ONE.replica(1))
    fleet.replicas[ONE.replica(2)] = launched(ONE.replica(2), LaunchState.WAITING)
    fleet.replicas[ONE.replica(3)] = launched(ONE.replica(3), LaunchState.STOPPING)
    fleet.present.discard("small#-1")
    state = fleet.look(to(3)).groups[0]
    assert (state.ready, state.starting, state.draining, state.held) == (1, 2, 1, "")


def test_a_replica_that_announces_that_it_drains_is_not_ready() -> None:
    fleet = settled(ONE.replica(0))
    sight = replace(fleet.sight(), presences=(present("small#-0", draining=True),))
    assert reconcile(sight, to(1), Memory(), now=0.0, pace=AT_ONCE).groups[0].ready == 0


def test_a_group_without_room_has_no_replica_although_somebody_waits() -> None:
    fleet = Fleet(demand={ONE: Demand(waiting=3, unfinished=3)})
    assert fleet.look({ONE: Target(0, "no room", is_full=True)}).orders == ()
    assert fleet.look({ONE: Target(0, "idle")}).orders != ()


def test_a_group_may_gain_what_starts_and_what_its_limit_leaves_room_for() -> None:
    fleet = settled(ONE.replica(0), ONE.replica(1), snapshot=registry(deployed(max_replicas=4)))
    assert fleet.look(to(2)).groups[0].more == 2
    fleet.replicas[ONE.replica(2)] = launched(ONE.replica(2), LaunchState.STARTING)
    assert fleet.look(to(3)).groups[0].more == 2, "one starts, and one more may"
    fleet.replicas[ONE.replica(3)] = launched(ONE.replica(3), LaunchState.STOPPING)
    assert fleet.look(to(3)).groups[0].more == 2, "one that drains makes room"
    fleet.run(ONE.replica(2), ONE.replica(3))
    assert fleet.look(to(4)).groups[0].more == 0


def test_a_group_gains_nothing_beyond_its_ceiling_its_machines_room_or_while_its_starts_fail() -> None:
    fleet = settled(ONE.replica(0), snapshot=registry(deployed(max_replicas=4)))
    assert fleet.look({ONE: Target(1, "costs", most=1)}).groups[0].more == 0
    assert fleet.look({ONE: Target(1, "no room", is_full=True)}).groups[0].more == 0
    assert fleet.look({ONE: Target(1, "not yet free", is_full=True, most=2)}).groups[0].more == 1
    fleet.replicas[ONE.replica(1)] = launched(ONE.replica(1), LaunchState.WAITING)
    assert fleet.look(to(2)).groups[0].more == 0
    fleet.replicas[ONE.replica(2)] = launched(ONE.replica(2), LaunchState.STARTING)
    assert fleet.look(to(3)).groups[0].more == 1

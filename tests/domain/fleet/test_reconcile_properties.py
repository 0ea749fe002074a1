"""What holds of the reconciler whatever the fleet looks like."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.fleet.demand import Demand
from axon.domain.fleet.reconcile import Ensure, Memory, Pace, Stop, reconcile
from axon.domain.fleet.replica import Group, Launched, LaunchState
from axon.domain.fleet.sight import Sight, Target
from axon.domain.registry.deployment import MemberState
from axon.domain.registry.snapshot import Snapshot
from tests.domain.fleet.builders import ONE, TWO, Fleet, deployed, launched, present, registry

GROUPS = (ONE, TWO, Group("gone"))
groups = st.sampled_from(GROUPS)
replicas = st.builds(
    lambda group, index, state, old: launched(
        group.replica(index), state, version="gone@v1" if group == GROUPS[2] else "small@v0" if old else ""
    ),
    groups,
    st.integers(0, 6),
    st.sampled_from(LaunchState),
    st.booleans(),
)
lists = st.lists(replicas, max_size=12, unique_by=lambda each: each.name)
targets = st.dictionaries(groups, st.integers(0, 9).map(lambda count: Target(count, "drawn")))
counts = st.none() | st.integers(0, 2)
demands = st.dictionaries(groups, st.builds(Demand, waiting=counts, unfinished=counts))
members = st.tuples(st.sampled_from([MemberState.READY, MemberState.DRAINING]), st.sampled_from(MemberState))
registries = st.builds(
    lambda states, least: registry(deployed(states=states, max_replicas=least)), members, st.integers(1, 8)
)
paces = st.builds(Pace, per_look=st.integers(1, 4), per_group=st.integers(1, 3), hold_s=st.sampled_from([0.0, 9.0]))


@st.composite
def sights(draw: st.DrawFn) -> Sight:
    found: list[Launched] = draw(lists)
    announced = [str(each.name) for each in found if draw(st.booleans())] + ["host-0"]
    return Sight(
        snapshot=draw(registries),
        launched=tuple(found),
        presences=tuple(present(each) for each in announced) if draw(st.booleans()) else None,
        run_id="run-1",
        demand=draw(demands),
    )


def remembered(sight: Sight, looks: int) -> Memory:
    """The memory of a leader that has seen this for some looks."""
    memory = Memory()
    for _ in range(looks):
        memory = reconcile(sight, {}, memory, now=0.0).memory
    return replace(memory, acted={})


@given(sights(), targets, paces, st.integers(0, 4))
def test_a_look_orders_a_bounded_number_of_known_things_once(
    sight: Sight, aims: dict[Group, Target], pace: Pace, looks: int
) -> None:
    orders = reconcile(sight, aims, remembered(sight, looks), now=100.0, pace=pace).orders
    ensures = [order.name for order in orders if isinstance(order, Ensure)]
    stops = {(order.name, order.incarnation) for order in orders if isinstance(order, Stop)}
    runs = {(each.name, each.incarnation) for each in sight.launched or ()}
    assert len(ensures) <= pace.per_look
    assert len(orders) - len(ensures) <= pace.per_look
    assert len({order.name for order in orders}) == len(orders)
    assert stops <= runs, "it stops what the launcher does not run"
    assert not set(ensures) & {name for name, _ in runs}, "it gives a name that is taken"
    assert all(order.reason for order in orders)


@given(sights(), targets, st.integers(0, 4))
def test_a_deployment_never_gets_more_than_it_may_have(sight: Sight, aims: dict[Group, Target], looks: int) -> None:
    orders = reconcile(sight, aims, remembered(sight, looks), now=100.0, pace=Pace(per_look=99, per_group=99)).orders
    deployment = sight.snapshot.deployments["small"]
    started = sum(isinstance(order, Ensure) for order in orders)
    counted = [
        each
        for each in sight.launched or ()
        if each.name.group.deployment == "small" and each.state is not LaunchState.LOST
    ]
    assert not started or len(counted) + started <= max(deployment.max_replicas, len(deployment.members))


@given(sights(), targets, st.integers(0, 4))
def test_the_last_replica_is_not_stopped_while_somebody_waits_or_nobody_knows(
    sight: Sight, aims: dict[Group, Target], looks: int
) -> None:
    pace = Pace(per_look=99, per_group=99, hold_s=0.0)
    orders = reconcile(sight, aims, remembered(sight, looks), now=100.0, pace=pace).orders
    stopped = {order.name for order in orders if isinstance(order, Stop)}
    for group in (ONE, TWO):
        demand = sight.demand_of(group)
        version = {ONE: "small@v1", TWO: "small@v2"}[group]
        usable = {
            each.name
            for each in sight.launched or ()
            if each.name.group == group
            and each.spec.version == version
            and each.state not in (LaunchState.STOPPING, LaunchState.LOST)
        }
        if usable and (demand is None or demand):
            assert usable - stopped, f"nothing is left of {group}"


@given(sights(), targets, groups, st.integers(1, 4), st.integers(0, 4))
def test_more_replicas_wanted_never_start_fewer_or_stop_more(
    sight: Sight, aims: dict[Group, Target], group: Group, more: int, looks: int
) -> None:
    pace, memory = Pace(per_look=99, per_group=99, hold_s=0.0), remembered(sight, looks)
    had = aims.get(group, Target(0, "drawn"))

    def change(count: int) -> int:
        orders = reconcile(sight, {**aims, group: Target(count, "drawn")}, memory, now=100.0, pace=pace).orders
        own = [order for order in orders if order.name.group == group]
        return sum(1 if isinstance(order, Ensure) else -1 for order in own)

    assert change(had.count) <= change(had.count + more)


@given(lists, targets, registries)
def test_it_reaches_what_is_wanted_and_then_orders_nothing(
    found: list[Launched], aims: dict[Group, Target], snapshot: Snapshot
) -> None:
    idle = dict.fromkeys(GROUPS, Demand(waiting=0, unfinished=0))
    fleet = Fleet(snapshot=snapshot, demand=idle, replicas={each.name: each for each in found})
    looks = fleet.settle({ONE: Target(0, ""), TWO: Target(0, ""), **aims}, looks=50)
    last = looks[-1]
    assert not last.orders
    assert not looks[-2].orders
    for state in last.groups:
        lost = sum(
            name.group == state.group and each.state is LaunchState.LOST for name, each in fleet.replicas.items()
        )
        member = next(each for each in snapshot.deployments["small"].members if each.letter == state.group.letter)
        assert fleet.count(state.group) - lost == state.wanted, member
    assert not fleet.count(GROUPS[2]) or all(
        each.state is LaunchState.LOST for name, each in fleet.replicas.items() if name.group == GROUPS[2]
    )


@given(sights(), targets)
def test_a_group_never_gains_more_than_its_deployments_limit(sight: Sight, aims: dict[Group, Target]) -> None:
    deployment = sight.snapshot.deployments["small"]
    limit = max(deployment.max_replicas, len(deployment.members))
    for state in reconcile(sight, aims, Memory(), now=100.0).groups:
        assert 0 <= state.more <= max(limit, state.starting)
        if state.ready + state.starting >= limit:
            assert state.more <= state.starting, "only what starts already"

from dataclasses import replace

import pytest

from axon.admission.line import Line
from axon.domain.registry.deployment import MemberState
from axon.domain.registry.price import Price
from axon.domain.registry.snapshot import Snapshot
from axon.gateway.offers.registered import RegisteredOffer
from axon.gateway.offers.wait import State, Wait
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import deployment, rollout, snapshot
from tests.gateway.offers.builders import FakeView, make_registered, said


def make_offer(clock: FakeClock, found: Snapshot | None = None) -> RegisteredOffer:
    return make_registered("small", clock, FakeView(found or snapshot(deployment())))


async def test_prompts_can_be_rendered_before_any_worker_runs(clock: FakeClock) -> None:
    offer = make_offer(clock)
    assert offer.is_known
    assert (await offer.prompts("small@v2")).max_model_len == 2048


def test_a_version_without_a_worker_is_absent_but_the_stable_one_is_waited_for(clock: FakeClock) -> None:
    offer = make_offer(clock, snapshot(deployment(going=rollout())))
    clock.advance(90.0)
    assert offer.known().absent_s == {"small@v2": 90.0}
    offer.fleet.learn([said("a", "small@v2")])
    assert offer.known().absent_s == {"small@v2": 0.0}


def test_versions_that_take_no_turns_are_known_by_their_state(clock: FakeClock) -> None:
    small = deployment()
    failed = replace(small, members=(small.members[0], replace(small.members[1], state=MemberState.FAILED)))
    known = make_offer(clock, snapshot(failed)).known()
    assert known.states["small@v2"] is MemberState.FAILED
    assert "small@v2" not in known.absent_s


@pytest.mark.parametrize(("min_replicas", "state"), [(1, State.LOADING), (0, State.COLD)])
def test_its_state_says_whether_a_worker_runs_or_is_to_run(clock: FakeClock, min_replicas: int, state: State) -> None:
    offer = make_offer(clock, snapshot(replace(deployment(), min_replicas=min_replicas, idle_s=60.0)))
    assert offer.listed().state is state
    offer.fleet.learn([said("a", "small@v1")])
    assert offer.listed().state is State.READY
    assert offer.listed().label == "v1"


def cold(clock: FakeClock, **more: object) -> RegisteredOffer:
    found = replace(deployment(), min_replicas=0, idle_s=60.0, **more)  # type: ignore[arg-type]
    return make_registered("small", clock, FakeView(snapshot(found)))


def test_a_cold_one_is_loading_while_anybody_waits_for_it(clock: FakeClock) -> None:
    offer = cold(clock)
    offer.saw("", Line(waiting=2))
    assert offer.listed().state is State.LOADING
    offer.saw("", Line())
    assert offer.listed().state is State.COLD
    assert cold(clock, hot=True).listed().state is State.LOADING, "a hot one shall always run"


def test_sessions_on_a_version_of_a_cold_deployment_are_not_moved_because_it_does_not_run(clock: FakeClock) -> None:
    offer = cold(clock)
    clock.advance(90.0)
    assert offer.known().absent_s == {}
    offer.fleet.learn([said("a", "small@v1")])
    assert offer.known().absent_s == {"small@v2": 90.0}


def test_a_turn_of_any_pool_is_taken_and_awaits_the_first_worker_there(clock: FakeClock) -> None:
    offer = cold(clock)
    assert (offer.pool(""), offer.pool("gold")) == ("", "gold")
    offer.fleet.learn([replace(said("a", "small@v1"), pool="gold")])
    asked = [("small@v1", ""), ("small@v1", "gold"), ("small@v2", "gold")]
    assert [offer.awaits_worker(version, pool) for version, pool in asked] == [True, False, True]


def test_a_turn_expects_to_wait_for_the_start_and_for_those_before_it(clock: FakeClock) -> None:
    offer = cold(clock)
    offer.saw("", Line(waiting=4, work=400.0))
    assert offer.wait("small@v1", "", 3) == Wait(state=State.LOADING, position=3), "no start was ever measured"
    offer.starts.measured("small@v1", 30.0)
    clock.advance(10.0)
    assert offer.wait("small@v1", "", 3) == Wait(state=State.LOADING, position=3, expected_s=20.0)
    busy = said("a", "small@v1")
    offer.fleet.learn([replace(busy, load=replace(busy.load, tokens_per_s=50.0, free_slots=0))])
    offer.fleet.learn([])
    assert offer.wait("small@v1", "", 3) == Wait(state=State.LOADING, position=3, expected_s=24.0)
    clock.advance(21.0)
    assert offer.wait("small@v1", "", 3) == Wait(state=State.LOADING, position=3), "it takes longer than the last one"
    offer.fleet.learn([busy])
    offer.saw("", Line(waiting=2, work=200.0))
    assert offer.wait("small@v1", "", 3) == Wait(state=State.READY, position=2, expected_s=2.0)
    offer.saw("", Line())
    assert offer.wait("small@v1", "", 3) is None, "nobody waits any more"


def test_the_time_of_a_start_counts_from_the_first_turn_that_waits_and_anew_after_a_worker(clock: FakeClock) -> None:
    offer = cold(clock)
    offer.starts.measured("small@v1", 30.0)
    clock.advance(50.0)
    offer.saw("", Line(waiting=1))
    clock.advance(5.0)
    offer.saw("gold", Line(waiting=1))
    assert offer.wait("small@v1", "gold", 1) == Wait(state=State.LOADING, position=1, expected_s=25.0)
    offer.fleet.learn([said("a", "small@v1")])
    offer.look_at_starts()
    offer.fleet.learn([])
    offer.look_at_starts()
    assert offer.wait("small@v1", "", 1) == Wait(state=State.LOADING, position=1, expected_s=30.0)


def test_a_version_has_the_price_that_holds_at_a_time(clock: FakeClock) -> None:
    prices = tuple(Price(id=f"p{since}", model="small", since=float(since)) for since in (10, 20))
    offer = make_offer(clock, replace(snapshot(deployment()), prices=prices))
    held = [offer.price("small@v1", at=at) for at in (9.9, 10.0, 19.9, 20.0)]
    assert [price and price.id for price in held] == [None, "p10", "p10", "p20"]


def test_a_view_that_is_not_fresh_says_that_it_may_miss_a_version(clock: FakeClock) -> None:
    view = FakeView(snapshot(deployment()))
    offer = make_registered("small", clock, view)
    assert offer.known().is_fresh
    view.is_fresh = False
    assert not offer.known().is_fresh

from dataclasses import replace

import pytest

from axon.domain.registry.deployment import MemberState
from axon.domain.registry.price import Price
from axon.domain.registry.snapshot import Snapshot
from axon.gateway.offers.offer import State
from axon.gateway.offers.registered import RegisteredOffer
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import deployment, rollout, snapshot
from tests.gateway.offers.builders import FakeTexts, FakeView, make_fleet, said


def make_offer(clock: FakeClock, found: Snapshot | None = None) -> RegisteredOffer:
    view = FakeView(found or snapshot(deployment()))
    return RegisteredOffer("small", view, make_fleet("small", clock), FakeTexts(), lambda name, length: None)


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
    offer = make_offer(clock, snapshot(replace(deployment(), min_replicas=min_replicas)))
    assert offer.listed().state is state
    offer.fleet.learn([said("a", "small@v1")])
    assert offer.listed().state is State.READY
    assert offer.listed().label == "v1"


def test_a_version_has_the_price_that_holds_at_a_time(clock: FakeClock) -> None:
    prices = tuple(Price(id=f"p{since}", model="small", since=float(since)) for since in (10, 20))
    offer = make_offer(clock, replace(snapshot(deployment()), prices=prices))
    held = [offer.price("small@v1", at=at) for at in (9.9, 10.0, 19.9, 20.0)]
    assert [price and price.id for price in held] == [None, "p10", "p10", "p20"]


def test_a_view_that_is_not_fresh_says_that_it_may_miss_a_version(clock: FakeClock) -> None:
    view = FakeView(snapshot(deployment()))
    offer = RegisteredOffer("small", view, make_fleet("small", clock), FakeTexts(), lambda name, length: None)
    assert offer.known().is_fresh
    view.is_fresh = False
    assert not offer.known().is_fresh

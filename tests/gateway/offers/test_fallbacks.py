"""Where a turn goes while its deployment is unavailable, and where a session stays after that."""

from dataclasses import replace

import pytest

from axon.admission.line import Line
from axon.admission.place import Place
from axon.domain.registry.deployment import Deployment, Member, MemberState
from axon.domain.session.pin import Pin, Reason, next_pin, reason_to_move
from axon.errors import NotFound, Unavailable
from axon.gateway.offers.fallbacks import holder_of, is_available, known_among, offer_at, places
from axon.gateway.offers.offers import Offers, Wanted
from axon.gateway.offers.registered import RegisteredOffer
from axon.runtime.clock import FakeClock
from tests.domain.registry.builders import deployment, snapshot, version
from tests.gateway.offers.builders import FakeView, make_offers, said

SMALL, SPARE, LAST = Place("small"), Place("spare"), Place("last")


def other(name: str, label: str) -> Deployment:
    only = Member(version=f"other@{label}", state=MemberState.READY)
    return Deployment(name=name, model="other", members=(only,), stable=only.version, created=1.0)


def make_view(stable: str = "small@v1") -> FakeView:
    """``small`` falls back on ``spare``, then on ``last``, whose own fallback is ``small``."""
    first = replace(deployment(), fallbacks=("spare", "last"), stable=stable)
    known = snapshot(first, other("spare", "v1"), replace(other("last", "v2"), fallbacks=("small",)))
    more = {each.id: each for each in (version("v1", "other"), version("v2", "other"))}
    return FakeView(replace(known, versions={**known.versions, **more}))


class Room:
    """The offers of a gateway, and the workers that it sees."""

    def __init__(self, view: FakeView | None = None) -> None:
        self.clock = FakeClock()
        self.offers: Offers = make_offers(self.clock, view=view or make_view())

    def wanted(self, name: str = "small", *, may_not: str = "") -> Wanted:
        return self.offers.find(name, lambda each: each != may_not, with_fallbacks=True)

    def see(self, **workers: str) -> None:
        """After a long time, each of these deployments has a worker with the version, and no other has one."""
        wanted = self.wanted()
        for offer in (wanted.offer, *wanted.fallbacks):
            offer.fleet.learn([])
        self.clock.advance(90.0)
        for name, has in workers.items():
            offer_at(wanted, name).fleet.learn([said("a", has)])


def test_while_it_is_available_its_fallbacks_are_only_for_when_it_is_full() -> None:
    room = Room()
    room.see(small="small@v2", spare="other@v1")
    assert places(room.wanted(), "") == (SMALL, SPARE)
    assert places(room.wanted(may_not="spare"), "") == (SMALL,)


def test_without_a_worker_for_longer_than_its_patience_a_fallback_answers() -> None:
    room = Room()
    assert places(room.wanted(), "") == (SMALL, SPARE, LAST), "nobody has been waited for yet"
    room.see(last="other@v2")
    assert places(room.wanted(), "") == (LAST,)
    assert not is_available(room.wanted().offer)
    assert places(room.wanted(may_not="last"), "") == (SMALL,), "it waits, as without fallbacks"


def test_fallbacks_of_a_fallback_are_not_used() -> None:
    room = Room()
    room.see(spare="other@v1")
    assert places(room.wanted("last"), "") == (LAST,)
    assert [each.name for each in room.wanted("last").fallbacks] == ["small"]


def test_one_without_a_version_is_answered_by_a_fallback_and_is_itself_not_shown() -> None:
    room = Room(make_view(stable=""))
    assert places(room.wanted(), "") == (SPARE, LAST)
    with pytest.raises(Unavailable, match="no version to serve yet"):
        room.offers.find("small", lambda each: True)
    room.see()
    with pytest.raises(Unavailable, match="no version to serve yet"):
        places(room.wanted(), "")
    with pytest.raises(NotFound):
        room.wanted(may_not="small")


def test_a_tenants_pool_without_a_worker_is_as_good_as_none() -> None:
    room = Room()
    room.see(small="small@v1")
    offer_at(room.wanted(), "spare").fleet.learn([replace(said("a", "other@v1"), pool="gold")])
    assert places(room.wanted(), "gold") == (Place("spare", "gold"),)
    room.see(small="small@v1", spare="other@v1")
    assert places(room.wanted(), "gold") == (Place("small", "gold"),), "it waits for a worker in its pool"


def test_a_cold_one_is_waited_for_unless_its_start_takes_longer_than_its_patience() -> None:
    view = make_view()
    cold = replace(view.snapshot.deployments["small"], min_replicas=0, idle_s=60.0, cold_patience_s=100.0)
    view.snapshot = replace(view.snapshot, deployments={**view.snapshot.deployments, "small": cold})
    room = Room(view)
    room.see(spare="other@v1")
    assert places(room.wanted(), "") == (SMALL, SPARE), "nobody knows how long a start takes"
    offer = room.wanted().offer
    assert isinstance(offer, RegisteredOffer)
    offer.starts.measured("small@v1", 99.0)
    assert places(room.wanted(), "gold") == (Place("small", "gold"),)
    offer.starts.measured("small@v1", 101.0)
    assert places(room.wanted(), "") == (SPARE,)
    offer.starts.measured("small@v1", 20.0)
    offer.saw("", Line(waiting=1))
    room.clock.advance(100.0)
    assert places(room.wanted(), "") == (SMALL, SPARE)
    room.clock.advance(1.0)
    assert places(room.wanted(), "") == (SPARE,), "it has been starting for longer than anybody waits"


def test_one_version_is_asked_of_its_own_deployment_only() -> None:
    room = Room()
    room.see(spare="other@v1")
    assert places(room.wanted("small@v2"), "") == (SMALL,)


def test_a_session_that_a_fallback_has_answered_stays_there_when_the_asked_one_is_back() -> None:
    room = Room()
    room.see(small="small@v1", spare="other@v1")
    wanted = room.wanted()
    known = known_among(wanted, wanted.offer)
    assert reason_to_move(Pin(1, "other@v1"), known) is None
    assert holder_of("other@v1", wanted, wanted.offer).name == "spare"
    assert holder_of("small@v2", wanted, wanted.offer) is wanted.offer


def test_a_session_leaves_a_deployment_that_a_fallback_answers_for() -> None:
    room = Room()
    room.see(small="small@v1", spare="other@v1", last="other@v2")
    wanted = room.wanted()
    known = known_among(wanted, offer_at(wanted, "spare"))
    moved = next_pin(Pin(0, "small@v1"), known, lambda: "other@v1")
    assert (moved.version, moved.reason) == ("other@v1", Reason.FALLBACK)
    assert reason_to_move(Pin(0, "other@v2"), known) is None, "it is on another fallback, and stays"
    room.see(small="small@v1")
    wanted = room.wanted()
    assert reason_to_move(Pin(0, "other@v1"), known_among(wanted, wanted.offer)) is Reason.NO_WORKER


def test_a_version_that_both_deployments_have_is_no_reason_to_move() -> None:
    same = replace(deployment(name="spare"), members=deployment().members)
    view = FakeView(snapshot(replace(deployment(), fallbacks=("spare",)), same))
    wanted = make_offers(FakeClock(), view=view).find("small", lambda each: True)
    spare = offer_at(wanted, "spare")
    assert reason_to_move(Pin(0, "small@v1"), known_among(wanted, spare)) is None
    assert holder_of("small@v1", wanted, spare) is spare

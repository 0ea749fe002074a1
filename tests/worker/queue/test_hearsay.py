"""Hearsay: what hints tell of lanes, and what is suspected where they are lost."""

from axon.dispatch.hint import Hint, decode_hint, encode_hint, hint_of
from axon.domain.fairness.lane import lane_names
from axon.worker.queue.hearsay import Hearsay
from tests.contracts.builders import make_job

LANES = lane_names("small", 4)
OWN = "small/@w1"


def test_a_hint_says_whose_job_waits_where() -> None:
    job = make_job(tenant="a", weight=2.0, reserved=0.25, priority=1)
    assert decode_hint(encode_hint(hint_of(job))) == hint_of(job)
    assert hint_of(job, OWN).home == job.lane
    assert decode_hint(b"small/03") == Hint(lane="small/03")  # as releases before say it
    assert decode_hint(b"{nonsense").lane == decode_hint(b"{").lane == ""


def test_only_lanes_of_ours_are_hinted_at() -> None:
    hearsay = Hearsay(LANES, OWN)
    for lane in ("small/@w2", "large/00", "small#gold/00", ""):
        hearsay.hear(Hint(lane=lane, tenant="a"), 0.0)
    assert not hearsay
    hearsay.hear(Hint(lane=OWN, home=LANES[0], tenant="a"), 0.0)
    assert OWN in hearsay
    assert LANES[0] not in hearsay


def test_what_was_offered_to_a_worker_is_looked_for_in_its_lane_later() -> None:
    hearsay = Hearsay(LANES, OWN)
    hearsay.hear(Hint(lane="small/@w2", home=LANES[-1], tenant="a"), 0.0)
    assert not hearsay
    assert LANES[-1] in hearsay.suspected(1.0, share=0.1)
    assert not hearsay
    hearsay.find([LANES[-1]], 1.0)
    assert LANES[-1] in hearsay


def test_every_lane_is_suspected_in_turn_and_those_spoken_of_each_time() -> None:
    hearsay = Hearsay(LANES, OWN)
    hearsay.hear(Hint(lane=LANES[0], tenant="a"), 0.0)
    hearsay.clear(LANES)
    rounds = [set(hearsay.suspected(float(second), share=1 / 3)) for second in range(3)]
    assert all({OWN, LANES[0]} <= each for each in rounds)
    assert set.union(*rounds) == {OWN, *LANES}
    hearsay.find([LANES[5]], 4.0)
    assert LANES[5] not in hearsay.suspected(4.0, share=1.0)  # it is known to have jobs


def test_a_lane_that_was_taken_from_comes_last_among_equals() -> None:
    hearsay = Hearsay(LANES, OWN)
    for lane in LANES[4:7]:
        hearsay.hear(Hint(lane=lane, tenant=lane), 0.0)
    hearsay.took(LANES[4], by=LANES[4], now=3.0)
    found = hearsay.waiting({LANES[4]: 2}, 5.0)
    assert [each.lane for each in found] == [LANES[5], LANES[6], LANES[4]]
    assert [(each.held, each.waited_s) for each in found] == [(0, 5.0), (0, 5.0), (2, 2.0)]


def test_tenants_are_known_for_a_while_and_as_long_as_they_have_jobs_here() -> None:
    hearsay = Hearsay(LANES, OWN)
    hearsay.hear(Hint(lane=LANES[0], tenant="a", weight=2.0), 0.0)
    hearsay.hold([make_job(tenant="b", lane=LANES[0])], 25.0)
    assert hearsay.active(26.0) == {"b"}
    assert hearsay.waiting({}, 26.0)[0].parties.keys() == {"a", "b"}
    hearsay.suspected(50.0, share=1.0)
    assert hearsay.waiting({}, 50.0)[0].parties.keys() == {"b"}

"""Where a follow-up turn goes: to who holds its blocks, or to its lane; never to nobody."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.job import Job
from axon.domain.presence import Presence
from axon.domain.session.residence import Residence, choose_worker
from tests.contracts.builders import make_job, make_presence, make_residence

NOW = 1000.0


def follow_up(num_prompt: int = 20, **changes: Any) -> Job:
    return make_job(prompt_ids=tuple(range(num_prompt)), **changes)


def placed(job: Job, residence: Residence | None, *presences: Presence) -> str | None:
    found = choose_worker(job, residence, presences, now=NOW, max_age_s=600.0)
    return found.worker if found else None


HERE = make_residence("w1", at=NOW - 5.0)
W1, W2 = make_presence("w1"), make_presence("w2")


def test_a_follow_up_goes_to_the_worker_that_holds_its_blocks() -> None:
    assert placed(follow_up(), HERE, W1, W2) == "w1"


def test_a_session_that_nobody_is_known_to_hold_goes_to_its_lane() -> None:
    assert placed(follow_up(), None, W1, W2) is None


def test_what_was_held_long_ago_is_not_counted_on() -> None:
    assert placed(follow_up(), replace(HERE, at=NOW - 601.0), W1, W2) is None


def test_a_turn_that_does_not_go_on_from_what_is_held_goes_to_its_lane() -> None:
    assert placed(follow_up(HERE.num_prompt), HERE, W1, W2) is None
    assert placed(follow_up(HERE.num_prompt + 1), HERE, W1, W2) == "w1"


def test_a_worker_that_is_gone_or_was_started_again_holds_nothing() -> None:
    assert placed(follow_up(), HERE, W2, make_presence("w3")) is None
    assert placed(follow_up(), HERE, make_presence("w1", "another life"), W2) is None


def test_a_worker_that_is_to_end_or_serves_another_version_gets_nothing() -> None:
    assert placed(follow_up(), HERE, make_presence("w1", draining=True), W2) is None
    assert placed(follow_up(), HERE, make_presence("w1", version="v2"), W2, make_presence("w3")) is None


def test_a_worker_without_room_for_all_choices_gets_nothing() -> None:
    assert placed(follow_up(), HERE, make_presence("w1", free_slots=0), W2) is None
    assert placed(follow_up(choices=3), HERE, make_presence("w1", free_slots=2), W2) is None
    assert placed(follow_up(choices=3), HERE, make_presence("w1", free_slots=3), W2) == "w1"


def test_with_one_worker_its_lane_leads_there_as_well() -> None:
    assert placed(follow_up(), HERE, W1) is None


@given(
    st.lists(st.builds(make_presence, st.sampled_from(["w1", "w2", "w3"]), draining=st.booleans()), max_size=4),
    st.builds(make_residence, st.sampled_from(["w1", "w2", "w4"]), at=st.floats(0, NOW)),
    st.integers(1, 40),
)
def test_whoever_gets_it_is_there_holds_it_and_has_room(
    presences: list[Presence], residence: Residence, num_prompt: int
) -> None:
    found = choose_worker(follow_up(num_prompt), residence, presences, now=NOW, max_age_s=600.0)
    if found is not None:
        assert found in presences
        assert found.incarnation == residence.incarnation
        assert found.load.free_slots > 0
        assert not found.draining

"""A deployment that only its workers describe: which version it serves, and what is said until one is known."""

import pytest

from axon.domain.model.served_version import ServedVersion
from axon.domain.presence import Presence
from axon.errors import Unavailable
from axon.gateway.offers.announced import AnnouncedOffer, elected
from axon.gateway.offers.wait import State
from axon.runtime.clock import FakeClock
from tests.gateway.offers.builders import TEXT, make_announced, said


def version_of(*presences: Presence) -> str | None:
    found = elected(presences, TEXT)
    return found.version if found else None


def test_most_workers_decide_on_the_version_and_of_as_many_the_younger_one() -> None:
    assert version_of() is None
    assert version_of(said("a"), said("b"), said("c", "v2", created=200.0)) == "v1"
    assert version_of(said("a"), said("c", "v2", created=200.0)) == "v2"


def test_a_worker_that_leaves_counts_only_where_nobody_stays() -> None:
    leaving = [said("a", draining=True), said("b", draining=True)]
    assert version_of(*leaving, said("c", "v2")) == "v2"
    assert version_of(*leaving) == "v1"


def test_a_worker_with_another_tokenizer_is_none_of_ours() -> None:
    assert version_of(said("a", text="other")) is None
    assert version_of(said("a", text="other"), said("b", text="other"), said("c", "v2")) == "v2"


def test_a_model_is_as_old_as_its_oldest_worker() -> None:
    found = elected([said("a", created=200.0), said("b", created=100.0)], TEXT)
    assert found is not None
    assert found.created == 100.0


@pytest.fixture
def learned() -> list[ServedVersion]:
    return []


@pytest.fixture
def offer(clock: FakeClock, learned: list[ServedVersion]) -> AnnouncedOffer:
    return make_announced("small", clock, learned=learned.append)


def test_before_the_first_worker_it_says_that_there_is_none(offer: AnnouncedOffer) -> None:
    assert not offer.is_known
    with pytest.raises(Unavailable, match="No worker of 'small'") as refusal:
        _ = offer.deployment
    assert refusal.value.code == "no_worker"


def test_workers_with_another_tokenizer_are_told_apart_from_none(offer: AnnouncedOffer) -> None:
    offer.fleet.learn([said("a", text="other")])
    assert not offer.is_known
    assert offer.problem().code == "model_mismatch"
    offer.fleet.learn([])
    assert offer.problem().code == "no_worker"


def test_what_was_known_stays_while_the_workers_are_away(offer: AnnouncedOffer, learned: list[ServedVersion]) -> None:
    offer.fleet.learn([said("a", max_model_len=77)])
    offer.fleet.learn([])
    offer.fleet.learn([said("a", text="other")])
    assert offer.is_known
    assert offer.served("v1").max_model_len == 77
    assert learned == [offer.served("v1")]


def test_a_new_version_is_learned_and_a_restarted_worker_is_no_news(
    offer: AnnouncedOffer, learned: list[ServedVersion]
) -> None:
    offer.fleet.learn([said("a")])
    offer.fleet.learn([said("a", created=300.0)])
    assert offer.deployment.created == 100.0
    offer.fleet.learn([said("a", "v2", created=400.0)])
    assert [each.version for each in learned] == ["v1", "v2"]


def test_sessions_may_stay_on_every_version_that_a_worker_has(offer: AnnouncedOffer) -> None:
    offer.fleet.learn([said("a"), said("b"), said("c", "v2")])
    assert offer.deployment.stable == "v1"
    assert set(offer.known().states) == {"v1", "v2"}
    offer.fleet.learn([said("c", "v2")])
    assert set(offer.known().states) == {"v2"}


async def test_prompts_are_bounded_by_the_context_that_the_workers_have(offer: AnnouncedOffer) -> None:
    offer.fleet.learn([said("a", max_model_len=77)])
    prompts = await offer.prompts("v1")
    assert prompts.max_model_len == 77
    assert await offer.prompts("v1") is prompts


def test_it_is_listed_as_ready_while_a_worker_is_there(offer: AnnouncedOffer) -> None:
    offer.fleet.learn([said("a")])
    assert offer.listed().state is State.READY
    offer.fleet.learn([])
    assert offer.listed().state is State.LOADING


def test_what_a_process_serves_itself_is_known_at_once(clock: FakeClock) -> None:
    own = said("a").deployment
    assert make_announced("small", clock, served=own).served("v1") is own

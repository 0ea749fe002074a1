"""What a gateway makes of what the workers say: what to ask them for, and what it says until it knows."""

from dataclasses import replace
from typing import Any

import pytest

from axon.adapters.live.memory_presences import MemoryPresences
from axon.domain.presence import Presence
from axon.domain.served_version import ServedVersion
from axon.errors import Unavailable
from axon.gateway.fleet import Fleet, served
from axon.runtime.clock import FakeClock
from axon.telemetry.metrics import Metrics
from tests.contracts.builders import make_presence

TEXT = "0a1b"


def said(worker: str, version: str = "v1", *, created: float = 100.0, draining: bool = False, **of: Any) -> Presence:
    presence = make_presence(worker, draining=draining)
    return replace(
        presence,
        deployment=replace(presence.deployment, version=version, created=created, **{"text": TEXT, **of}),
    )


def version_of(*presences: Presence) -> str | None:
    found = served(presences, TEXT)
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
    found = served([said("a", created=200.0), said("b", created=100.0)], TEXT)
    assert found is not None
    assert found.created == 100.0


@pytest.fixture
def learned() -> list[ServedVersion]:
    return []


@pytest.fixture
def fleet(clock: FakeClock, learned: list[ServedVersion]) -> Fleet:
    presences = MemoryPresences(clock)
    return Fleet("small", text=TEXT, presences=presences, learned=learned.append, metrics=Metrics())


def test_before_the_first_worker_it_says_that_there_is_none(fleet: Fleet) -> None:
    assert not fleet.known
    with pytest.raises(Unavailable, match="No worker of 'small'") as refusal:
        _ = fleet.deployment
    assert refusal.value.code == "no_worker"


def test_workers_with_another_tokenizer_are_told_apart_from_none(fleet: Fleet) -> None:
    fleet.learn([said("a", text="other")])
    assert not fleet.known
    assert fleet.problem().code == "model_mismatch"
    fleet.learn([])
    assert fleet.problem().code == "no_worker"


def test_what_was_known_stays_while_the_workers_are_away(fleet: Fleet, learned: list[ServedVersion]) -> None:
    fleet.learn([said("a", max_model_len=77)])
    fleet.learn([])
    fleet.learn([said("a", text="other")])
    assert fleet.known
    assert fleet.deployment.max_model_len == 77
    assert learned == [fleet.deployment]


def test_a_new_version_is_learned_and_a_restarted_worker_is_no_news(fleet: Fleet, learned: list[ServedVersion]) -> None:
    fleet.learn([said("a")])
    fleet.learn([said("a", created=300.0)])
    assert fleet.deployment.created == 100.0
    fleet.learn([said("a", "v2", created=400.0)])
    assert [each.version for each in learned] == ["v1", "v2"]


def test_a_pool_without_a_worker_is_refused_and_the_shared_one_waits(fleet: Fleet) -> None:
    fleet.learn([said("a"), replace(said("b"), pool="gold")])
    assert (fleet.pool(""), fleet.pool("gold")) == ("", "gold")
    fleet.learn([replace(said("b"), pool="gold", draining=True)])
    assert fleet.pool("") == ""
    with pytest.raises(Unavailable, match="'gold'") as refusal:
        fleet.pool("gold")
    assert refusal.value.code == "pool_unavailable"


def test_the_one_worker_of_a_process_serves_every_pool(clock: FakeClock) -> None:
    presences = MemoryPresences(clock)
    alone = Fleet("small", text=TEXT, presences=presences, learned=print, metrics=Metrics(), has_pools=False)
    assert alone.pool("gold") == ""


def test_what_workers_serve_counts_for_their_pool_while_none_of_it_has_room(fleet: Fleet) -> None:
    def busy(worker: str, pool: str, rate: float, free_slots: int = 0) -> Presence:
        presence = replace(said(worker), pool=pool)
        return replace(presence, load=replace(presence.load, tokens_per_s=rate, free_slots=free_slots))

    assert fleet.tokens_per_s() is None
    fleet.learn([busy("a", "", 100.0), busy("b", "", 300.0), busy("c", "gold", 50.0, free_slots=1)])
    assert (fleet.tokens_per_s(), fleet.tokens_per_s("gold")) == (400.0, None)
    fleet.learn([busy("a", "", 0.0), busy("c", "gold", 50.0)])
    assert (fleet.tokens_per_s(), fleet.tokens_per_s("gold")) == (400.0, 50.0)

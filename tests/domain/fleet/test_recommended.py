"""Recommended replicas and the workers that somebody else has started for them."""

from dataclasses import replace

from axon.domain.fleet.recommended import with_workers
from tests.domain.fleet.builders import ONE, launched, present

TOLD = tuple(launched(ONE.replica(index)) for index in range(3))


def names(*workers: str, told: int = 3) -> list[str]:
    found = with_workers(TOLD[:told], [present(worker) for worker in workers])
    return [each.announced for each in found]


def test_workers_of_any_name_are_those_that_were_recommended() -> None:
    assert names("pod-b", "pod-a", "pod-c") == ["pod-a", "pod-b", "pod-c"]


def test_a_recommendation_that_nobody_has_followed_has_no_worker() -> None:
    assert names("pod-a") == ["pod-a", "small#-1", "small#-2"]


def test_more_workers_than_were_recommended_are_left_out() -> None:
    assert names("pod-a", "pod-b", told=1) == ["pod-a"]


def test_a_worker_that_drains_comes_last() -> None:
    leaving = replace(present("pod-a"), draining=True)
    found = with_workers(TOLD[:1], [leaving, present("pod-b")])
    assert [each.announced for each in found] == ["pod-b"]


def test_workers_of_another_pool_are_not_counted() -> None:
    found = with_workers(TOLD[:1], [replace(present("pod-a"), pool="gold")])
    assert [each.announced for each in found] == ["small#-0"]

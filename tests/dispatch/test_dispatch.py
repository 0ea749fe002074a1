"""Accepting over the twins: one id has one body, and lanes of ours are declared where they are missing."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.queue.memory import MemoryBroker
from axon.dispatch.config import DispatchConfig
from axon.dispatch.dispatch import Dispatch
from axon.domain.job import Job
from axon.domain.turn import Turn
from axon.domain.wire import decode
from axon.errors import DependencyDown
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_job


class Services:
    """The twins, and a journal that keeps what it is told."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.live = open_memory_live(self.clock, retention_s=60.0)
        self.broker = MemoryBroker(clock=self.clock)
        self.records: list[Turn] = []

    async def append(self, turns: Sequence[Turn]) -> None:
        self.records += turns

    async def barrier(self, *, timeout_s: float) -> None: ...

    async def dispatch(self, is_ours: Callable[[str], bool] = lambda deployment: deployment == "small") -> Dispatch:
        queue = self.broker.connect()
        await queue.open()
        return Dispatch(
            log=self.live.log,
            journal=self,
            queue=queue,
            wakeups=self.live.wakeups,
            config=DispatchConfig(),
            reader_grace_s=30.0,
            is_ours=is_ours,
        )

    def taken(self, lane: str) -> list[Job]:
        found = []
        while delivery := self.broker.take([lane]):
            found.append(decode(Job, delivery.body))
        return found


@pytest.mark.parametrize("lane", ["small/07", "small:b/07", "small:b#gold/flex/07"])
async def test_a_lane_that_is_missing_is_declared_and_the_job_published_once(lane: str) -> None:
    services = Services()
    job = make_job(lane=lane)
    assert await (await services.dispatch()).accept(job) == job
    assert services.taken(lane) == [job]
    assert [turn.job for turn in services.records] == [job]


@pytest.mark.parametrize("lane", ["other/07", "small/@w1", "small", "smaller/07"])
async def test_a_lane_that_is_not_of_the_jobs_deployment_is_not_declared(lane: str) -> None:
    services = Services()
    with pytest.raises(DependencyDown) as refusal:
        await (await services.dispatch()).accept(make_job(lane=lane))
    assert refusal.value.code == "lane_unknown"
    assert not services.broker._lanes


async def test_a_lane_of_a_deployment_that_is_not_served_here_is_not_declared() -> None:
    services = Services()
    dispatch = await services.dispatch(is_ours=lambda deployment: False)
    for publish in (dispatch.accept, dispatch.again):
        with pytest.raises(DependencyDown) as refusal:
            await publish(make_job())
        assert refusal.value.code == "lane_unknown"


async def test_another_failure_of_the_queue_declares_nothing() -> None:
    services = Services()
    services.broker.max_waiting = 0
    services.broker.declare(["small/00"])
    with pytest.raises(DependencyDown) as refusal:
        await (await services.dispatch()).accept(make_job())
    assert refusal.value.code == "queue_full"


async def test_of_two_requests_under_one_id_the_first_ones_body_is_published_by_both() -> None:
    services = Services()
    first, twin = (make_job(seed=seed, idempotency_key="k", body_digest="d") for seed in (1, 2))
    assert await (await services.dispatch()).accept(first) == first
    assert await (await services.dispatch()).accept(twin) == first
    assert services.taken("small/00") == [first, first]
    assert [turn.job for turn in services.records] == [first, first]


async def test_a_log_that_forgets_the_first_one_in_between_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the id again then has its one body: a twin that comes later gets that."""
    services = Services()
    first, twin, third = (make_job(seed=seed, idempotency_key="k", body_digest="d") for seed in (1, 2, 3))
    await (await services.dispatch()).accept(first)
    read = services.live.log.read

    async def forgetful(*args: Any, **how: Any) -> Any:
        monkeypatch.setattr(services.live.log, "read", read)
        services.live.lose_everything()
        return await read(*args, **how)

    monkeypatch.setattr(services.live.log, "read", forgetful)
    assert await (await services.dispatch()).accept(twin) == twin
    assert await (await services.dispatch()).accept(third) == twin


async def test_jobs_that_find_a_lane_missing_at_the_same_time_declare_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Services()
    dispatch = await services.dispatch()
    declare, declared = dispatch._queue.declare, list[str]()

    async def slowly(lanes: Sequence[str]) -> None:
        await asyncio.sleep(0)
        declared.extend(lanes)
        await declare(lanes)

    monkeypatch.setattr(dispatch._queue, "declare", slowly)
    jobs = [make_job(f"turn_{number}") for number in range(20)]
    assert await asyncio.gather(*map(dispatch.accept, jobs)) == jobs
    assert declared == ["small/00"]
    services.broker._lanes.clear()
    await dispatch.accept(make_job("turn_later"))
    assert declared == ["small/00", "small/00"], "the queue has lost it meanwhile"


async def test_a_job_that_the_journal_does_not_confirm_is_kept_as_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    services = Services()
    dispatch = await services.dispatch()

    async def fails(turns: Sequence[Turn]) -> None:
        raise DependencyDown("The store is away.")

    monkeypatch.setattr(services, "append", fails)
    job = make_job()
    with pytest.raises(DependencyDown):
        await dispatch.accept(job)
    assert services.taken(job.lane) == [job], "a worker may have it"
    [view] = await services.live.log.views([job.id])
    assert view is not None
    assert (view.cancelled, view.refused) == (True, True)
    again = make_job("turn_2")
    with pytest.raises(DependencyDown):
        await dispatch.accept(again, again=True)
    [view] = await services.live.log.views([again.id])
    assert view is not None
    assert not view.cancelled


async def test_the_refusal_of_a_first_request_leaves_alone_what_a_second_one_was_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    services = Services()
    first, second = await services.dispatch(), await services.dispatch()
    confirm, hung, job = services.append, asyncio.Event(), make_job(idempotency_key="k")

    async def hangs(turns: Sequence[Turn]) -> None:
        hung.set()
        await asyncio.sleep(20.0)

    monkeypatch.setattr(services, "append", hangs)
    waiting = asyncio.create_task(first.accept(job))
    await hung.wait()
    monkeypatch.setattr(services, "append", confirm)
    assert await second.accept(job, again=True) == job
    with pytest.raises(DependencyDown):
        await waiting
    [view] = await services.live.log.views([job.id])
    assert view is not None
    assert (view.cancelled, view.refused) == (False, False)


async def test_a_second_request_is_refused_as_well_where_the_first_ones_refusal_came_before() -> None:
    services, job = Services(), make_job(idempotency_key="k")
    dispatch = await services.dispatch()
    await dispatch.accept(job)
    await services.live.log.flag(job.id, cancel=True, refused=True)
    with pytest.raises(DependencyDown, match="not accepted in time") as refusal:
        await dispatch.accept(job, again=True)
    assert refusal.value.retry_after_s == 1.0

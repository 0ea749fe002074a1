"""From an ask to an accepted turn: a repeated ask that fails takes nothing from the one that was accepted."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from axon.adapters.live.memory.live import open_memory_live
from axon.adapters.queue.memory import MemoryBroker
from axon.admission.admission import Admission
from axon.admission.config import AdmissionConfig
from axon.dispatch.config import DispatchConfig
from axon.dispatch.dispatch import Dispatch
from axon.dispatch.idempotency import Idempotency
from axon.domain.job import Job
from axon.domain.tenants.account import Bounds, Round
from axon.domain.turn import Turn
from axon.domain.wire import decode
from axon.errors import Conflict, DependencyDown
from axon.gateway.turn.ask import Ask
from axon.gateway.turn.opening import Opening
from axon.runtime.clock import FakeClock
from tests.contracts.builders import make_job

TTL_S = 60.0


@dataclass
class Records:
    """A journal and a store in one: what is appended can be read."""

    turns: dict[str, Turn] = field(default_factory=dict)

    async def append(self, records: list[Turn]) -> None:
        self.turns |= {turn.id: turn for turn in records}

    async def barrier(self, *, timeout_s: float) -> None: ...

    async def get(self, turn_id: str) -> Turn | None:
        return self.turns.get(turn_id)


Make = Callable[[str, float], Awaitable[Job]]


class Desk:
    def __init__(self) -> None:
        clock = FakeClock()
        records = self.records = Records()
        self.queue = MemoryBroker().connect()
        self.live = open_memory_live(clock, retention_s=TTL_S)
        self.admission = Admission(self.live.accounts, AdmissionConfig(), clock)
        dispatch = Dispatch(
            log=self.live.log,
            journal=records,  # type: ignore[arg-type]
            queue=self.queue,
            wakeups=self.live.wakeups,
            config=DispatchConfig(),
            reader_grace_s=30.0,
        )
        self.opening = Opening(self.admission, dispatch, Idempotency(self.live.log, records), clock)  # type: ignore[arg-type]

    async def num_jobs(self) -> int:
        """Of the tenant, as its account has them."""
        look = Round(account="tenant/acme", beats=(), bounds=Bounds(), ttl_s=1.0)
        return (await self.live.accounts.beat([look]))[0].jobs

    async def open(self, make: Make | None = None, digest: str = "d") -> tuple[Job, bool]:
        await self.queue.open()
        await self.queue.declare([make_job().lane])

        async def plain(job_id: str, now: float) -> Job:
            return make_job(job_id)

        ask = Ask(prefix="resp_", tenant="acme", idempotency_key="order-17", body_digest=digest)
        async with self.opening.admitted(ask) as entry:
            if entry.is_new:
                await entry.accept(await (make or plain)(entry.id, entry.now))
        return entry.job, entry.is_new


async def test_a_repeated_ask_is_told_that_it_is_not_new() -> None:
    desk = Desk()
    job, is_new = await desk.open()
    again, is_new_again = await desk.open()
    assert (again, is_new, is_new_again) == (job, True, False)


async def test_a_twin_that_is_refused_takes_nothing_from_the_one_that_was_accepted() -> None:
    """Both waited for the same conversation; one was let in, and the other gave up."""
    desk = Desk()
    accepted: list[Job] = []

    async def busy(job_id: str, now: float) -> Job:
        accepted.append((await desk.open())[0])
        raise Conflict("Another turn of this conversation is still running.")

    with pytest.raises(Conflict):
        await desk.open(busy)
    view = await desk.live.log.read(accepted[0].id, after=0)
    assert view is not None
    assert not view.cancelled
    assert await desk.num_jobs() == 1


async def test_a_twin_that_comes_through_late_follows_the_one_that_was_accepted() -> None:
    desk = Desk()
    accepted: list[Job] = []

    async def late(job_id: str, now: float) -> Job:
        accepted.append((await desk.open())[0])
        return make_job(job_id, seed=99)

    job, is_new = await desk.open(late)
    assert (job, is_new) == (accepted[0], False)


async def test_a_refused_ask_leaves_no_trace() -> None:
    desk = Desk()

    async def refused(job_id: str, now: float) -> Job:
        raise Conflict("no")

    with pytest.raises(Conflict):
        await desk.open(refused)
    assert await desk.num_jobs() == 0
    assert (await desk.open())[1]


async def published(desk: Desk) -> list[Job]:
    """The bodies on the queue, the oldest first."""
    found: list[Job] = []
    while delivery := await desk.queue.take([make_job().lane]):
        found.append(decode(Job, delivery.body))
    return found


async def test_a_twin_with_another_body_is_a_conflict_however_late_the_first_was_accepted() -> None:
    """Both found the key free; the first is accepted while the other's prompt is made."""
    desk = Desk()
    accepted: list[Job] = []

    async def late(job_id: str, now: float) -> Job:
        accepted.append((await desk.open())[0])
        return make_job(job_id, seed=99)

    with pytest.raises(Conflict, match="another request body"):
        await desk.open(late, digest="other")
    await stands(desk, accepted[0])


async def stands(desk: Desk, first: Job) -> None:
    """The first one's turn is as it was accepted: in the log, in the records, on the queue and in the account."""
    view = await desk.live.log.read(first.id, after=0)
    assert view is not None
    assert (decode(Job, view.body), view.cancelled) == (first, False)
    assert desk.records.turns[first.id].job == first
    assert all(body == first for body in await published(desk))
    assert await desk.num_jobs() == 1


@pytest.mark.parametrize("digest", ["d", "other"])
async def test_a_twin_that_is_accepted_at_the_last_moment_keeps_its_body(
    monkeypatch: pytest.MonkeyPatch, digest: str
) -> None:
    """Both have looked for the other and found nobody; only the log tells who was first."""
    desk = Desk()
    accepted: list[Job] = []
    reserve = desk.admission.reserve

    async def late(*args: Any) -> Any:
        ticket = await reserve(*args)
        monkeypatch.undo()
        accepted.append((await desk.open())[0])
        return ticket

    async def other(job_id: str, now: float) -> Job:
        return make_job(job_id, seed=99)

    monkeypatch.setattr(desk.admission, "reserve", late)
    if digest == "d":
        assert await desk.open(other, digest=digest) == (accepted[0], False)
    else:
        with pytest.raises(Conflict, match="another request body"):
            await desk.open(other, digest=digest)
    await stands(desk, accepted[0])


@pytest.mark.parametrize("digest", ["d", "other"])
@pytest.mark.parametrize("fails", ["append", "open"])
async def test_a_twin_whose_acceptance_fails_abandons_nobody_elses_turn(
    monkeypatch: pytest.MonkeyPatch, fails: str, digest: str
) -> None:
    desk = Desk()
    accepted: list[Job] = []
    reserve = desk.admission.reserve

    async def away(*args: Any, **more: Any) -> Any:
        raise DependencyDown("away")

    async def late(*args: Any) -> Any:
        ticket = await reserve(*args)
        monkeypatch.undo()
        accepted.append((await desk.open())[0])
        monkeypatch.setattr(desk.records if fails == "append" else desk.live.log, fails, away)
        return ticket

    monkeypatch.setattr(desk.admission, "reserve", late)
    with pytest.raises((DependencyDown, Conflict)):
        await desk.open(digest=digest)
    monkeypatch.undo()
    await stands(desk, accepted[0])


async def test_a_turn_that_could_not_be_accepted_is_abandoned_and_frees_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()

    async def away(*args: Any, **more: Any) -> Any:
        raise DependencyDown("away")

    monkeypatch.setattr(desk.records, "append", away)
    with pytest.raises(DependencyDown):
        await desk.open()
    monkeypatch.undo()
    [job] = await published(desk)
    view = await desk.live.log.read(job.id, after=0)
    assert view is not None
    assert view.cancelled
    assert await desk.num_jobs() == 0
    assert (await desk.open(digest="other"))[1]

"""Streams of tenants with limits: paced by the bucket, stopped by the budget, and nobody else is the slower for it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from axon.adapters.live.memory.accounts import MemoryAccounts
from axon.admission.admission import Admission, Allowed, Entrant, Pulse
from axon.admission.config import AdmissionConfig
from axon.admission.meters import Meters
from axon.domain.job import Job
from axon.domain.sampling import Sampling
from axon.domain.tenants.account import Bounds, Round, Standing
from axon.domain.tenants.tenant import Terms
from axon.runtime.clock import FakeClock
from axon.telemetry.metrics import Metrics
from axon.worker.job.hands import Hands
from axon.worker.job.pacing import Pacing
from axon.worker.job.trials import Trials
from axon.worker.worker import Worker
from tests.contracts.builders import make_job
from tests.worker.job.builders import make_running
from tests.worker.world import STEP_S, World

PROMPT = 3


class Metered(World):
    """Workers that tell the accounts what their jobs use."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.accounts = MemoryAccounts(self.loop)
        self.admission = Admission(self.accounts, AdmissionConfig(), self.loop)
        self.settle = self.admission.settle

    async def start_metered(self) -> Worker:
        return await self.start(tickets=self.admission)

    async def admitted(self, seed: int, max_tokens: int, terms: Terms, *, tenant: str = "acme") -> Job:
        """An accepted job that sets no more aside than its prompt and one token: all else is asked for as it comes."""
        job = make_job(f"turn_{seed}", tenant=tenant, sampling=Sampling(max_tokens=max_tokens))
        ticket = await self.admission.admit(Entrant(job_id=job.id, tenant=tenant, terms=terms), Meters())
        ticket = await self.admission.reserve(replace(ticket, expected=1), job, Meters())
        return await self.ask(seed=seed, max_tokens=max_tokens, tenant=tenant, ticket=str(ticket))

    async def look(self, tenant: str = "acme", **bounds: Any) -> Standing:
        each = Round(account=f"tenant/{tenant}", beats=(), bounds=Bounds(**bounds), ttl_s=1.0)
        return (await self.accounts.beat([each]))[0]

    async def reaches(self, job: Job, num_tokens: int) -> float:
        """When the log has so many of its tokens."""
        while await self.num_tokens(job) < num_tokens:  # noqa: ASYNC110 - virtual time costs nothing
            await asyncio.sleep(0.01)
        return self.loop.monotonic()

    async def ends(self, job: Job) -> float:
        await self.until(lambda: job.id in self.kept.turns)
        return self.loop.monotonic()


def test_a_dry_bucket_paces_the_stream_and_it_ends_as_if_nothing_had_been() -> None:
    world = Metered()

    async def story() -> None:
        await world.start_metered()
        job = await world.admitted(1, 180, Terms(tokens_per_minute=60.0))
        dry_at, dry = await world.reaches(job, 60), 60
        later_at, later = await world.reaches(job, 160), 160
        assert (later - dry) / (later_at - dry_at) == pytest.approx(1.0, rel=0.1)
        await world.ends(job)
        world.check(job)
        ledger = world.kept.turns[job.id].ledger
        assert ledger is not None
        assert 100.0 < ledger.paced_s <= ledger.decode_s
        assert (await world.look(tokens_per_minute=60.0)).jobs == 0

    world.run(story)


def test_several_streams_of_a_tenant_share_its_rate() -> None:
    world = Metered()

    async def story() -> None:
        await world.start_metered()
        terms = Terms(tokens_per_minute=120.0)
        jobs = [await world.admitted(seed, 200, terms) for seed in (1, 2)]
        await world.reaches(jobs[0], 70)
        before_at, before = world.loop.monotonic(), [await world.num_tokens(job) for job in jobs]
        await asyncio.sleep(40.0)
        gained = [await world.num_tokens(job) - had for job, had in zip(jobs, before, strict=True)]
        assert sum(gained) / (world.loop.monotonic() - before_at) == pytest.approx(2.0, rel=0.1)
        assert min(gained) > 0.3 * max(gained)

    world.run(story)


def test_a_bucket_that_is_not_dry_slows_nobody() -> None:
    world = Metered()

    async def story() -> None:
        await world.start_metered()
        job = await world.admitted(1, 400, Terms(tokens_per_minute=60_000.0))
        began = world.loop.monotonic()
        assert await world.ends(job) - began == pytest.approx(400 * STEP_S, rel=0.05)
        world.check(job)

    world.run(story)


def test_a_paced_stream_holds_no_slot_and_others_come_through() -> None:
    world = Metered(slots=1)

    async def story() -> None:
        worker = await world.start_metered()
        slow = await world.admitted(1, 300, Terms(tokens_per_minute=60.0))
        await world.until(lambda: worker.hands.running.get(slow.id) and worker.hands.running[slow.id].is_paused)
        began = world.loop.monotonic()
        others = [await world.admitted(seed, 20, Terms(), tenant="other") for seed in (2, 3, 4)]
        for other in others:
            await world.ends(other)
        assert world.loop.monotonic() - began < 3 * 20 * STEP_S + 3.0
        assert slow.id not in world.kept.turns

    world.run(story)


def test_a_paced_stream_can_be_cancelled_and_pays_for_what_was_delivered() -> None:
    world = Metered()

    async def story() -> None:
        worker = await world.start_metered()
        job = await world.admitted(1, 100, Terms(tokens_per_minute=60.0, tokens_per_day=10_000))
        await world.until(lambda: worker.hands.running.get(job.id) and worker.hands.running[job.id].is_held_back)
        await world.live.log.flag(job.id, cancel=True)
        await world.ends(job)
        turn = world.kept.turns[job.id]
        assert (turn.state, len(turn.tokens)) == ("cancelled", await world.num_tokens(job))
        assert turn.ledger is not None
        assert turn.ledger.wasted > 0
        assert len(turn.tokens) < 100
        assert (await world.look()).spent == {"day": PROMPT + len(turn.tokens)}

    world.run(story)


def test_a_stream_that_is_made_to_its_end_and_still_held_back_ends_at_its_deadline() -> None:
    world = Metered()

    async def story() -> None:
        worker = await world.start_metered()
        job = await world.admitted(1, 62, Terms(tokens_per_minute=6.0))
        await world.until(lambda: worker.hands.running.get(job.id) and worker.hands.running[job.id].terminal)
        assert worker.hands.running[job.id].is_held_back
        running = worker.hands.running[job.id]
        running.job = replace(running.job, deadline=world.loop.now())
        await world.ends(job)
        turn = world.kept.turns[job.id]
        assert turn.state == "expired"
        assert 0 < len(turn.tokens) < 62

    world.run(story)


def test_a_paced_stream_goes_on_at_another_worker_at_the_same_pace() -> None:
    world = Metered()

    async def story() -> None:
        first = await world.start_metered()
        job = await world.admitted(1, 150, Terms(tokens_per_minute=60.0))
        dry_at = await world.reaches(job, 60)
        world.kill(first)
        await world.start_metered()
        later_at = await world.reaches(job, 140)
        assert 80 / (later_at - dry_at) == pytest.approx(1.0, rel=0.1)
        await world.ends(job)
        world.check(job)

    world.run(story)


def test_a_spent_budget_stops_a_stream_with_a_complete_answer_that_says_why() -> None:
    world = Metered()

    async def story() -> None:
        await world.start_metered()
        job = await world.admitted(1, 500, Terms(tokens_per_day=103))
        await world.ends(job)
        turn = world.kept.turns[job.id]
        assert (turn.state, turn.code) == ("completed", "insufficient_quota")
        assert [(end.choice, end.reason, end.at) for end in turn.ends] == [(0, "length", len(turn.tokens))]
        assert 100 <= len(turn.tokens) <= 100 + 0.5 / STEP_S
        assert (await world.look()).spent == {"day": PROMPT + len(turn.tokens)}
        last = (await world.chunks(job))[-1]
        assert (last.terminal, last.code) == ("completed", "insufficient_quota")
        assert turn.ledger is not None
        assert turn.ledger == last.ledger
        assert turn.ledger.billed == PROMPT + len(turn.tokens)

    world.run(story)


async def test_jobs_that_began_apart_come_to_share_a_call() -> None:
    clock, hands, calls = FakeClock(), Hands(Trials(strike_limit=2)), list[list[str]]()

    class Tickets:
        async def beat(self, pulses: Sequence[Pulse]) -> Mapping[str, Allowed]:
            calls.append([pulse.job.id for pulse in pulses])
            return {}

    pacing = Pacing(hands, Mock(holds=True), Tickets(), clock=clock, paced=Metrics().turns.paced.labels("small"))
    for tick in range(30):
        if tick in (0, 2, 3):
            running = make_running()
            running.job = replace(running.job, id=f"turn_{tick}")
            hands.take(running)
            pacing.begin(running)
        await pacing.beat()
        clock.advance(0.2)
    assert len(calls) <= 3 + 30 // 5
    assert all(sorted(call) == ["turn_0", "turn_2", "turn_3"] for call in calls[3:])

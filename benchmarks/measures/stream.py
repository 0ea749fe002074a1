"""The token log under a worker's own emitter: how much goes through it, and how soon a reader has it.

An engine that costs nothing gives every running job one token a step. "after" begins a step when the last append is
answered, so each entry holds one token; "every" begins one when its time has come, and what comes while an append is
in flight gathers, as in production.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import LogView
from axon.domain.wire import encode
from axon.engine.protocol.messages import Emitted
from axon.gateway.turn.follow import Follower
from axon.ownership.ending import Ending
from axon.ports.live import Appended, AppendStatus, TokenLog
from axon.ports.queue import Delivery
from axon.runtime.clock import SystemClock
from axon.sessions.lookup import Lookup
from axon.telemetry.metrics import Metrics
from axon.text.tokenizer import ByteTokenizer
from axon.worker.emit import Emitter
from axon.worker.job.hands import Hands
from axon.worker.job.running import Running
from axon.worker.job.trials import Trials
from axon.worker.queue.parked import Parked
from benchmarks.measures.figures import Figures, latencies_ms
from benchmarks.measures.stage import Stage, make_job

_OWNER = "worker-bench"


class _CountedLog:
    """The log, with a note of every append."""

    def __init__(self, log: TokenLog) -> None:
        self._log = log
        self.num_entries = self.num_tokens = self.num_calls = 0
        self.asked_at: dict[tuple[str, int], float] = {}
        self.answered = asyncio.Event()
        self.open, self.claim, self.release, self.flag = log.open, log.claim, log.release, log.flag
        self.forget, self.views, self.confirm = log.forget, log.views, log.confirm

    async def read(self, job_id: str, *, after: int) -> LogView | None:
        return await self._log.read(job_id, after=after)

    async def append(self, batch: Sequence[tuple[str, Chunk]]) -> Sequence[Appended]:
        now = time.perf_counter()
        for job_id, chunk in batch:
            self.asked_at[job_id, chunk.last] = now
        answers = await self._log.append(batch)
        assert all(answer.status is AppendStatus.OK for answer in answers), answers
        self.num_calls += 1
        self.num_entries += len(batch)
        self.num_tokens += sum(len(chunk.tokens) for _, chunk in batch)
        self.answered.set()
        return answers


class _Bench:
    """A worker without queue and engine: its jobs never end."""

    def __init__(self, stage: Stage, jobs: list[Running]) -> None:
        self.log = _CountedLog(stage.live.log)
        ending = Ending(stage.journal, _settle_nothing, SystemClock())
        hands = Hands(Trials(strike_limit=1))
        self.emitter = Emitter(
            *(hands, Parked(), None, _restore_nothing),
            log=self.log,
            queue=stage.queue,
            ending=ending,
            metrics=Metrics(),
            gather_s=0.0,  # what an append costs is the question
        )
        self.jobs = jobs
        for running in jobs:
            hands.take(running)

    def step(self) -> None:
        for running in self.jobs:
            token = running.job.prompt_ids[len(running.tokens) % len(running.job.prompt_ids)]
            running.push(running.choices[0], Emitted(running.job.id, token))
            self.emitter.touch(running)

    async def run(self, seconds: float, step_s: float | None) -> float:
        """Steps for so long; returns how long it was."""
        started = time.perf_counter()
        next_step = started
        while (now := time.perf_counter()) < started + seconds:
            if step_s is None:
                self.log.answered.clear()
                self.step()
                await self.log.answered.wait()
                continue
            while next_step <= now:  # late, but none is left out
                self.step()
                next_step += step_s
            await asyncio.sleep(next_step - time.perf_counter())
        return time.perf_counter() - started


async def _restore_nothing(running: Running) -> bool:
    raise AssertionError(f"the log has forgotten {running.job.id}")


async def throughput(stage: Stage, num_jobs: int, *, seconds: float, step_s: float | None) -> Figures:
    """Appends and tokens through the log, nobody reading."""
    async with _running(stage, num_jobs) as bench:
        took_s = await bench.run(seconds, step_s)
        log = bench.log
        return {
            "appends/s": log.num_entries / took_s,
            "tokens/s": log.num_tokens / took_s,
            "tokens/entry": log.num_tokens / max(1, log.num_entries),
            "batches/s": log.num_calls / took_s,
        }


async def latency(stage: Stage, num_jobs: int, *, seconds: float, step_s: float) -> Figures:
    """From the call that appends a token until a follower in the same process yields it."""
    seen: list[float] = []
    async with _running(stage, num_jobs) as bench, asyncio.TaskGroup() as readers:
        clock = SystemClock()
        lookup = Lookup(stage.live, stage.store.turns, stage.journal, clock)
        follower = Follower(stage.live, stage.store.turns, lookup, clock, reader_grace_s=30.0, silence_s=15.0)
        tasks = [readers.create_task(_read(follower, each.job, bench.log, seen)) for each in bench.jobs]
        await bench.run(0.2, step_s)
        seen.clear()
        await bench.run(seconds, step_s)
        for task in tasks:
            task.cancel()
    return latencies_ms(seen)


async def _read(follower: Follower, job: Job, log: _CountedLog, seen: list[float]) -> None:
    async for chunk in follower.follow(job.id, after=0):
        now = time.perf_counter()
        if isinstance(chunk, Chunk) and (asked_at := log.asked_at.get((job.id, chunk.last))):
            seen.append(now - asked_at)


@asynccontextmanager
async def _running(stage: Stage, num_jobs: int) -> AsyncIterator[_Bench]:
    """So many claimed jobs, and an emitter at work on them."""
    bench = _Bench(stage, [await _claimed(stage, number) for number in range(num_jobs)])
    emitting = asyncio.create_task(bench.emitter.run())
    try:
        yield bench
    finally:
        emitting.cancel()
        with suppress(asyncio.CancelledError):
            await emitting


async def _claimed(stage: Stage, number: int) -> Running:
    job = make_job(number)
    body = encode(job)
    await stage.live.log.open(job.id, body, reader_ttl_s=None)
    claimed = await stage.live.log.claim(job.id, _OWNER, over=0)
    assert claimed is not None
    delivery = Delivery(tag=number, lane=job.lane, body=body, redelivered=False)
    return Running(job=job, delivery=delivery, epoch=claimed.epoch, tokenizer=ByteTokenizer())


async def _settle_nothing(job: Job, used: int) -> None:
    """No job ends here."""

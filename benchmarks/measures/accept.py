"""Accepting: how long until journal and queue have both confirmed a turn. Nobody takes it from there."""

import asyncio
import time

from axon.dispatch.config import DispatchConfig
from axon.dispatch.dispatch import Dispatch
from benchmarks.measures.figures import Figures, latencies_ms
from benchmarks.measures.stage import Stage, make_job


async def accepting(stage: Stage, *, concurrency: int, num_turns: int) -> Figures:
    """Turns one after the other on each of ``concurrency`` tasks."""
    dispatch = Dispatch(
        log=stage.live.log,
        journal=stage.journal,
        queue=stage.queue,
        wakeups=stage.live.wakeups,
        config=DispatchConfig(),
        reader_grace_s=30.0,
    )
    jobs = [make_job(number) for number in range(num_turns)]
    waits: list[float] = []

    async def accept_some() -> None:
        while jobs:
            job = jobs.pop()
            asked_at = time.perf_counter()
            await dispatch.accept(job)
            waits.append(time.perf_counter() - asked_at)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(concurrency):
            tasks.create_task(accept_some())
    return {**latencies_ms(waits), "turns/s": num_turns / (time.perf_counter() - started)}

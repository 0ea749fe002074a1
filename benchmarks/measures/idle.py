"""Followers of streams on which nothing is written: what each costs a gateway and Redis. In a process of its own.

As in a gateway, the silence is real: they read the log again, say that a reader is there, ask the store.
"""

import asyncio
import gc
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import redis
import uvloop

from axon.control.persister import Persister
from axon.domain.wire import encode
from axon.errors import DependencyDown
from axon.gateway.turn.follow import Follower
from axon.runtime.clock import SystemClock
from axon.sessions.lookup import Lookup
from benchmarks.measures.figures import Figures
from benchmarks.measures.stage import Stage, Urls, make_job, open_stage

_PAGE_BYTES = 4096
_SENT = ("cmdstat_evalsha", "cmdstat_eval", "cmdstat_ping", "cmdstat_publish", "cmdstat_subscribe")
"""What a client sends; the others run inside a script."""
_COMING_S = 5.0
"""Spread over the longest pause between two readings, so that every window sees the same number of them."""
_COME_AGAIN_S = 0.2


def idle_rounds(
    urls: Urls | None, num_followers: int, *, settle_s: float, window_s: float, rounds: int
) -> list[Figures]:
    """So many windows of one process's life, one after the other."""
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
        return process.submit(_child, urls, num_followers, settle_s, window_s, rounds).result()


def _child(urls: Urls | None, num_followers: int, settle_s: float, window_s: float, rounds: int) -> list[Figures]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_idle(urls, num_followers, settle_s, window_s, rounds))


async def _idle(urls: Urls | None, num_followers: int, settle_s: float, window_s: float, rounds: int) -> list[Figures]:
    async with open_stage(urls) as stage, asyncio.TaskGroup() as tasks:
        persister = stage.reader and Persister(
            stage.reader, stage.store.turns, stage.store.markers, clock=SystemClock()
        )
        running = [tasks.create_task(persister.run())] if persister else []
        job_ids = await _opened(stage, num_followers)
        gc.collect()
        before_bytes = _rss_bytes()
        clock = SystemClock()
        lookup = Lookup(stage.live, stage.store.turns, stage.journal, clock)
        follower = Follower(stage.live, stage.store.turns, lookup, clock, reader_grace_s=30.0, silence_s=15.0)
        failures: Counter[str] = Counter()
        started = time.perf_counter()
        for number, job_id in enumerate(job_ids):
            await asyncio.sleep(started + _COMING_S * number / num_followers - time.perf_counter())
            running.append(tasks.create_task(_follow(follower, job_id, failures)))
        await asyncio.sleep(settle_s)
        gc.collect()
        rss_bytes = (_rss_bytes() - before_bytes) / num_followers
        figures = []
        for _ in range(rounds):
            failures.clear()
            window = await _window(urls, window_s)
            figures.append({**window, "RSS bytes each": rss_bytes, "failures": failures.total()})
        for task in running:
            task.cancel()
    return figures


async def _window(urls: Urls | None, window_s: float) -> Figures:
    before = _redis_counts(urls)
    cpu, started = time.process_time(), time.perf_counter()
    await asyncio.sleep(window_s)
    took_s = time.perf_counter() - started
    own = {"CPU s/s": (time.process_time() - cpu) / took_s}
    after = _redis_counts(urls)
    return own | {f"{name}/s": (count - before[name]) / took_s for name, count in after.items()}


def _redis_counts(urls: Urls | None) -> Figures:
    """Commands that clients sent and all that ran, those of scripts too, and the server's CPU time."""
    if urls is None:
        return {}
    with redis.Redis.from_url(urls.live, protocol=2) as admin:
        stats = admin.info("commandstats")
        cpu = admin.info("cpu")
    return {
        "Redis requests": sum(stats.get(name, {"calls": 0})["calls"] for name in _SENT),
        "Redis commands": sum(command["calls"] for name, command in stats.items() if name != "cmdstat_info"),
        "Redis CPU s": cpu["used_cpu_user"] + cpu["used_cpu_sys"],
    }


async def _opened(stage: Stage, num_jobs: int) -> list[str]:
    """Accepted jobs that no worker has begun."""
    jobs = [make_job(number) for number in range(num_jobs)]
    for job in jobs:
        await stage.live.log.open(job.id, encode(job), reader_ttl_s=30.0)
    return [job.id for job in jobs]


async def _follow(follower: Follower, job_id: str, failures: Counter[str]) -> None:
    """As a client that comes again when it is turned away."""
    while True:
        try:
            async for chunk in follower.follow(job_id, after=0):
                assert chunk is None, chunk
        except DependencyDown as error:
            failures[error.code] += 1
            await asyncio.sleep(_COME_AGAIN_S)


def _rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES

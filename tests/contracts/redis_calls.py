"""A client of a Redis, and calls of its token log, for tests of a real one. Holds no assertions about them."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from axon.adapters.live.redis.live import RedisLive
from axon.domain.log.chunk import Chunk
from axon.errors import DependencyDown
from axon.ports.live import Appended, TokenLog
from tests.contracts.builders import claim_epoch
from tests.services.redis import RedisServer

JOB = "turn_1"


@asynccontextmanager
async def opened(server: RedisServer, **options: Any) -> AsyncIterator[RedisLive]:
    live = RedisLive(server.url, retention_s=60.0, **options)
    await live.open()
    try:
        yield live
    finally:
        await live.aclose()


async def claimed(log: TokenLog, job_id: str = JOB) -> int:
    assert await log.open(job_id, b"job", reader_ttl_s=None)
    return await claim_epoch(log, job_id, "w1", over=0)


async def append(log: TokenLog, chunk: Chunk, job_id: str = JOB) -> Appended:
    (appended,) = await log.append([(job_id, chunk)])
    return appended


async def ids(log: TokenLog) -> list[int]:
    view = await log.read(JOB, after=0)
    assert view is not None
    return [token.id for chunk in view.chunks for token in chunk.tokens]


async def until(true: Callable[[], Any], timeout_s: float = 60.0) -> Any:
    """Waits for the thing itself. Calls that fail meanwhile are what a caller of ours would repeat."""
    async with asyncio.timeout(timeout_s):
        while True:
            try:
                found = true()
                if inspect.isawaitable(found):
                    found = await found
                if found:
                    return found
            except DependencyDown:
                pass
            await asyncio.sleep(0.02)


def raising(error: Exception) -> Callable[..., Any]:
    async def fail(*args: Any) -> None:
        raise error

    return fail

"""Calls of a token log with what is the same in most tests filled in. Holds no assertions about it."""

from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import LogView
from axon.ports.live import Appended, TokenLog
from tests.contracts.builders import claim_epoch

JOB = "turn_1"


async def claimed(log: TokenLog, *, reader_ttl_s: float | None = None) -> int:
    assert await log.open(JOB, b"job", reader_ttl_s=reader_ttl_s)
    return await claim_epoch(log, JOB, "w1", over=0)


async def append(log: TokenLog, chunk: Chunk, job_id: str = JOB) -> Appended:
    (appended,) = await log.append([(job_id, chunk)])
    return appended


async def read(log: TokenLog, after: int = 0) -> LogView:
    view = await log.read(JOB, after=after)
    assert view is not None
    return view


def ids(view: LogView) -> list[int]:
    return [token.id for chunk in view.chunks for token in chunk.tokens]

"""Onto the queue: from the moment ``accept`` returns, the turn is answered exactly once. Knows no HTTP."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from axon.dispatch.affinity import Affinity
from axon.dispatch.config import DispatchConfig
from axon.dispatch.hint import encode_hint, hint_of
from axon.dispatch.idempotency import check_body
from axon.domain.job import Job
from axon.domain.turn import opened
from axon.domain.wire import decode, encode
from axon.errors import AxonError, DependencyDown
from axon.ports.journal import Journal
from axon.ports.live import TokenLog, Wakeups
from axon.ports.queue import Queue
from axon.runtime.failpoints import failpoint

T = TypeVar("T")


def work_channel(deployment: str) -> str:
    """Where workers of a deployment hear of new jobs; see ``axon.dispatch.hint``."""
    return f"work/{deployment}"


class Dispatch:
    """Journal and queue, both confirmed."""

    def __init__(
        self,
        *,
        log: TokenLog,
        journal: Journal,
        queue: Queue,
        wakeups: Wakeups,
        config: DispatchConfig,
        reader_grace_s: float,
        affinity: Affinity | None = None,
    ) -> None:
        self._log = log
        self._journal = journal
        self._queue = queue
        self._wakeups = wakeups
        self._config = config
        self._reader_grace_s = reader_grace_s
        self._affinity = affinity

    async def accept(self, job: Job, *, again: bool = False) -> Job:
        """Returns what is accepted; raises when that is not known. Twice is harmless.

        One id has one body: the first one's, should another have been opened under the id before. A job that was
        opened here and not accepted is abandoned, unless it is accepted ``again`` and somebody waits for it already.
        """
        opening = _Opening()
        try:
            async with asyncio.timeout(self._config.accept_timeout_s):
                job = await self._first(job, opening)
                failpoint("dispatch.opened")
                own = await self._confirmed(job, encode(job))
        except BaseException as error:
            if not again and opening.may_be_mine(job):
                await self._abandon(job.id)
            if isinstance(error, TimeoutError):
                raise DependencyDown("The journal or the queue did not confirm in time.", retry_after_s=1.0) from error
            raise
        failpoint("dispatch.accepted")
        await self.hint(job, own)
        return job

    async def again(self, job: Job) -> None:
        """Puts an accepted job back onto the queue, after the process that held it is gone."""
        body = encode(job)
        await self._open(job, body)
        await self._queue.publish(job.lane, body)
        await self.hint(job)

    async def hint(self, job: Job, own: str = "") -> None:
        """Wakes workers, to look where the job may wait; a lost hint costs a few seconds, not the job."""
        with contextlib.suppress(AxonError):
            await self._wakeups.notify(work_channel(job.deployment), encode_hint(hint_of(job, own)))

    async def _first(self, job: Job, opening: "_Opening") -> Job:
        """The job whose body the log has under the id: this one, unless a twin came first.

        ``Conflict`` when that was another request: nothing is done for either here.
        """
        opening.made = await self._open(job, encode(job))
        if opening.made or (view := await self._log.read(job.id, after=0)) is None:
            return job
        first = decode(Job, view.body)
        check_body(first, job.body_digest)
        return first

    async def _abandon(self, job_id: str) -> None:
        """The turn's client is told that it was not accepted: should it be, it is ended, not run."""
        with contextlib.suppress(AxonError):
            await self._log.flag(job_id, cancel=True)

    async def _confirmed(self, job: Job, body: bytes) -> str:
        """Both at once; both are waited for, whatever becomes of the other. Returns the own lane that has the job."""
        noted, own = await asyncio.gather(
            _passing("dispatch.journaled", partial(self._journal.append, [opened(job)])),
            _passing("dispatch.published", partial(self._publish, job, body)),
            return_exceptions=True,
        )
        if noted is not None:
            raise noted
        if isinstance(own, BaseException):
            raise own
        return own

    async def _publish(self, job: Job, body: bytes) -> str:
        """Into the own lane of the worker that should have it, which is returned, else into its tenant's."""
        if self._affinity is not None and (own := await self._affinity.offer(job, body)):
            return own
        await self._queue.publish(job.lane, body)
        return ""

    async def _open(self, job: Job, body: bytes) -> bool:
        return await self._log.open(job.id, body, reader_ttl_s=job.reader_ttl_s(self._reader_grace_s))


@dataclass(slots=True)
class _Opening:
    """What is known of who made the job's stream."""

    made: bool | None = None
    """By this acceptance; None while the log has not answered."""

    def may_be_mine(self, job: Job) -> bool:
        """Only a key has twins: without one, a stream that may be there can be nobody else's."""
        return not job.idempotency_key if self.made is None else self.made


async def _passing(name: str, confirm: Callable[[], Awaitable[T]]) -> T:
    answer = await confirm()
    failpoint(name)
    return answer

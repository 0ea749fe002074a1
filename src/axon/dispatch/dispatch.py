"""Onto the queue: from the moment ``accept`` returns, the turn is answered exactly once. Knows no HTTP."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from axon.dispatch.affinity import Affinity
from axon.dispatch.config import DispatchConfig
from axon.dispatch.hint import encode_hint, hint_of
from axon.domain.job import Job
from axon.domain.turn import opened
from axon.domain.wire import encode
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

    async def accept(self, job: Job) -> None:
        """Returns when the turn is accepted; raises when that is not known. Twice is harmless."""
        body = encode(job)
        try:
            async with asyncio.timeout(self._config.accept_timeout_s):
                await self._open(job, body)
                failpoint("dispatch.opened")
                own = await self._confirmed(job, body)
        except TimeoutError as error:
            raise DependencyDown("The journal or the queue did not confirm in time.", retry_after_s=1.0) from error
        failpoint("dispatch.accepted")
        await self.hint(job, own)

    async def abandon(self, job_id: str) -> None:
        """The turn's client was told that it was not accepted: should it be, it is ended, not run."""
        with contextlib.suppress(AxonError):
            await self._log.flag(job_id, cancel=True)

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

    async def _open(self, job: Job, body: bytes) -> None:
        await self._log.open(job.id, body, reader_ttl_s=job.reader_ttl_s(self._reader_grace_s))


async def _passing(name: str, confirm: Callable[[], Awaitable[T]]) -> T:
    answer = await confirm()
    failpoint(name)
    return answer

"""Dispatch: writes a turn to journal and queue. Once ``accept`` returns, it is answered exactly once. Knows no HTTP."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from axon.dispatch.affinity import Affinity
from axon.dispatch.config import DispatchConfig
from axon.dispatch.hint import encode_hint, hint_of
from axon.dispatch.idempotency import check_body
from axon.domain.fairness.lane import is_lane_of
from axon.domain.job import Job
from axon.domain.turn import opened
from axon.domain.wire import decode, encode
from axon.errors import AxonError, DependencyDown
from axon.ports.journal import Journal
from axon.ports.live import TokenLog, Wakeups
from axon.ports.queue import LANE_UNKNOWN, Queue
from axon.runtime.failpoints import failpoint

T = TypeVar("T")
_MAX_TRIES = 5


def work_channel(deployment: str) -> str:
    """Channel of hints at new jobs for the workers of a deployment; see ``axon.dispatch.hint``."""
    return f"work/{deployment}"


class Dispatch:
    """Accepts turns when journal and queue have both confirmed."""

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
        is_ours: Callable[[str], bool] = lambda deployment: False,
    ) -> None:
        """``is_ours`` tells whether lanes of a deployment are declared here when the queue does not know them."""
        self._log = log
        self._journal = journal
        self._queue = queue
        self._wakeups = wakeups
        self._config = config
        self._reader_grace_s = reader_grace_s
        self._affinity = affinity
        self._is_ours = is_ours
        self._declaring: dict[str, asyncio.Lock] = {}
        self._num_declared: Counter[str] = Counter()
        """How often each lane was declared here because the queue did not know it."""

    async def accept(self, job: Job, *, again: bool = False) -> Job:
        """Returns the accepted job; raises when acceptance is unknown. Idempotent.

        An id has one body: if a job was opened under this id before, that one is accepted and returned. A job that was
        opened here and not accepted is cancelled, unless this is a second acceptance (``again``) of a job for which
        another request may wait.
        """
        creation = _Creation()
        try:
            async with asyncio.timeout(self._config.accept_timeout_s):
                job, body = await self._first(job, encode(job), creation)
                failpoint("dispatch.opened")
                own = await self._confirmed(job, body)
                if again:
                    await self.confirm(job)
        except BaseException as error:
            if not again and creation.may_be_mine(job):
                await self._abandon(job.id)
            if isinstance(error, TimeoutError):
                raise DependencyDown("The journal or the queue did not confirm in time.", retry_after_s=1.0) from error
            raise
        failpoint("dispatch.accepted")
        await self.hint(job, own)
        return job

    async def confirm(self, job: Job) -> None:
        """Has the log remember that a client is told that the job is accepted: its first request may still fail.

        Raises ``DependencyDown`` where that has failed already, and the job is cancelled.
        """
        if not await self._log.confirm(job.id):
            raise DependencyDown("The first request with this key was not accepted in time.", retry_after_s=1.0)

    async def again(self, job: Job) -> None:
        """Puts an accepted job on the queue again, after the process that held it is gone."""
        body = encode(job)
        await self._open(job, body)
        await self._enqueue(job, body)
        await self.hint(job)

    async def hint(self, job: Job, own: str = "") -> None:
        """Notifies workers of a waiting job; a lost hint costs a few seconds, until control repeats it."""
        with contextlib.suppress(AxonError):
            await self._wakeups.notify(work_channel(job.deployment), encode_hint(hint_of(job, own)))

    async def _first(self, job: Job, body: bytes, creation: "_Creation") -> tuple[Job, bytes]:
        """The job that the log has under the id, and its body: this one, unless a request with the same key came first.

        Raises ``Conflict`` when that request had another body.
        """
        for _ in range(_MAX_TRIES):
            creation.made = await self._open(job, body)
            if creation.made:
                return job, body
            if (view := await self._log.read(job.id, after=0)) is not None:
                first = decode(Job, view.body)
                check_body(first, job.body_digest)
                return first, view.body
            # The log has lost it in between: whoever opens it again first has the id's one body.
        raise DependencyDown("The token log forgets what it was told.", retry_after_s=1.0)

    async def _abandon(self, job_id: str) -> None:
        """Cancels a job whose client gets an error: should it be on the queue, it is ended, and nothing is billed."""
        with contextlib.suppress(AxonError):
            await self._log.flag(job_id, cancel=True, refused=True)

    async def _confirmed(self, job: Job, body: bytes) -> str:
        """Writes journal and queue concurrently and waits for both, even if one fails. Returns the own lane that
        took the job, or nothing."""
        journaled, own = await asyncio.gather(
            _passing("dispatch.journaled", partial(self._journal.append, [opened(job)])),
            _passing("dispatch.published", partial(self._publish, job, body)),
            return_exceptions=True,
        )
        if journaled is not None:
            raise journaled
        if isinstance(own, BaseException):
            raise own
        return own

    async def _publish(self, job: Job, body: bytes) -> str:
        """Publishes to the own lane of a worker that holds its session, and returns that lane, else to its tenant's."""
        if self._affinity is not None and (own := await self._affinity.offer(job, body)):
            return own
        await self._enqueue(job, body)
        return ""

    async def _enqueue(self, job: Job, body: bytes) -> None:
        """Publishes to the tenant's lane. A lane of ours that the queue does not know is declared, and the job
        published once more: a version may be asked for before its first worker is there."""
        before = self._num_declared[job.lane]
        try:
            await self._queue.publish(job.lane, body)
        except DependencyDown as error:
            is_ours = self._is_ours(job.deployment) and is_lane_of(job.lane, job.deployment)
            if error.code != LANE_UNKNOWN or not is_ours:
                raise
            await self._declare(job.lane, before)
            await self._queue.publish(job.lane, body)

    async def _declare(self, lane: str, before: int) -> None:
        """Declares a lane, unless that was done since ``before``: many first jobs of a cold model come at once, and a
        broker takes its time for each declaration."""
        async with self._declaring.setdefault(lane, asyncio.Lock()):
            if self._num_declared[lane] == before:
                await self._queue.declare([lane])
                self._num_declared[lane] += 1

    async def _open(self, job: Job, body: bytes) -> bool:
        return await self._log.open(job.id, body, reader_ttl_s=job.reader_ttl_s(self._reader_grace_s))


@dataclass(slots=True)
class _Creation:
    """Whether this acceptance has created the job's stream."""

    made: bool | None = None
    """None while the log has not answered."""

    def may_be_mine(self, job: Job) -> bool:
        """Whether the stream may be this acceptance's. Without an idempotency key no other request shares its id."""
        return not job.idempotency_key if self.made is None else self.made


async def _passing(name: str, confirm: Callable[[], Awaitable[T]]) -> T:
    answer = await confirm()
    failpoint(name)
    return answer

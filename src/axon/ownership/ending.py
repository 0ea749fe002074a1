"""The end of a turn, in order: terminal append, journal, settle, ack. This module does the two in the middle."""

from collections.abc import Awaitable, Callable, Sequence

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.session.erasure import without_words
from axon.domain.turn import Turn, TurnState, ended, opened, unbilled
from axon.ports.journal import Journal
from axon.ports.live import TokenLog
from axon.runtime.clock import Clock
from axon.runtime.failpoints import failpoint

Settle = Callable[[Job, int], Awaitable[None]]
"""Settles a job's ticket; takes the job and the number of tokens used."""
IsRefused = Callable[[str], Awaitable[bool]]
"""Whether the client of a cancelled job was told that it was not accepted; takes the job's id."""
Forget = Callable[[Job], Awaitable[None]]
"""Deletes the stream of a job whose text must not be kept, after a grace time for its reader."""


class Ending:
    """The steps after the terminal append. They are idempotent: after a crash another owner repeats them."""

    def __init__(
        self,
        journal: Journal,
        settle: Settle,
        clock: Clock,
        forget: Forget | None = None,
        *,
        is_refused: IsRefused | None = None,
        traced: Callable[[Turn], None] | None = None,
    ) -> None:
        """``traced`` is told of each turn that has ended; None where nothing is traced.

        Without ``is_refused`` every turn is billed."""
        self._journal = journal
        self._settle = settle
        self._clock = clock
        self._forget, self._is_refused, self._traced = forget, is_refused, traced

    async def finish(self, job: Job, chunks: Sequence[Chunk]) -> Turn:
        """Records the end and settles the ticket. ``chunks`` is the whole stream, the terminal chunk last."""
        turn = ended(opened(job), tuple(chunks), at=self._clock.now())
        # A completed turn is billed: a request with the same idempotency key is given its answer.
        if turn.state is not TurnState.COMPLETED and self._is_refused is not None and await self._is_refused(job.id):
            turn = unbilled(turn)
        failpoint("ending.before_journal")
        await self._journal.append([without_words(turn) if job.forget else turn])
        failpoint("ending.after_journal")
        await self._settle(job, turn.usage.total_tokens)
        if job.forget and self._forget is not None:
            await self._forget(job)
        failpoint("ending.settled")
        if self._traced is not None:
            self._traced(turn)
        return turn


def refused_in(log: TokenLog) -> IsRefused:
    """A function that asks this log whether a job's client was told that the job was not accepted."""

    async def is_refused(job_id: str) -> bool:
        [view] = await log.views([job_id])
        return view is not None and view.refused

    return is_refused

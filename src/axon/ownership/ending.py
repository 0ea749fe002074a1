"""The end of a turn, in the one right order: terminal append, journal, settle; the holder of the delivery acks last."""

from collections.abc import Awaitable, Callable, Sequence

from axon.domain.chunk import Chunk
from axon.domain.erasure import without_words
from axon.domain.job import Job
from axon.domain.turn import Turn, ended, opened
from axon.ports.journal import Journal
from axon.runtime.clock import Clock
from axon.runtime.failpoints import failpoint

Settle = Callable[[Job, int], Awaitable[None]]
"""Takes the job and the tokens it used."""
Forget = Callable[[Job], Awaitable[None]]
"""Takes a job whose text is to be kept nowhere, once its reader has had time to read it."""


class Ending:
    """What follows the terminal append; repeating it changes nothing."""

    def __init__(self, journal: Journal, settle: Settle, clock: Clock, forget: Forget | None = None) -> None:
        self._journal = journal
        self._settle = settle
        self._clock = clock
        self._forget = forget

    async def finish(self, job: Job, chunks: Sequence[Chunk]) -> Turn:
        """``chunks`` is the whole stream, the terminal one last."""
        turn = ended(opened(job), tuple(chunks), at=self._clock.now())
        failpoint("ending.before_journal")
        await self._journal.append([without_words(turn) if job.forget else turn])
        failpoint("ending.after_journal")
        await self._settle(job, turn.usage.total_tokens)
        if job.forget and self._forget is not None:
            await self._forget(job)
        failpoint("ending.settled")
        return turn

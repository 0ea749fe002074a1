"""The jobs in this worker's hands: the one owner of every ``Running``. Knows no engine, no queue and no log.

Every change of a job's fate goes through here. The parts that act on a change register a callback: the emitter for jobs
that have something to append, the supervisor for jobs that leave the engine or may enter it, the taking for free slots.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from axon.domain.failure import Failure
from axon.domain.job import Job
from axon.domain.turn import TurnState
from axon.worker.job.running import Running
from axon.worker.job.trials import Trials

_JOBS_PER_SLOT = 16
"""Jobs held at most, per slot: a stream that is held back to its tenant's rate needs no slot, but it needs memory."""


class Hands:
    """``take`` a job, end it in one of several ways, and ``forget`` it when its end is written or it is another's."""

    def __init__(self, trials: Trials) -> None:
        self.trials = trials
        self.slots = 0
        """Sequences that the engine runs at once; known when the engine is up."""
        self.is_closed = False
        """The worker is draining: it takes nothing more."""
        self.has_engine = True
        """False from an engine's death until the next one is up: others take what waits in the lanes meanwhile."""
        self.on_news: list[Callable[[Running], None]] = []
        """Called with a job that has something to append to the log."""
        self.on_out: list[Callable[[Running], None]] = []
        """Called with a job that must leave the engine now."""
        self.on_fill: list[Callable[[], None]] = []
        """Called when any jobs that are not in the engine may have to enter it."""
        self.on_enter: list[Callable[[Running], None]] = []
        """Called with one job that is to enter the engine."""
        self.on_room: list[Callable[[], None]] = []
        """Called when another job may be taken from the queue."""
        self._running: dict[str, Running] = {}

    # --- which jobs there are

    @property
    def running(self) -> Mapping[str, Running]:
        """The attempts that count here, by job id."""
        return self._running

    def holds(self, running: Running) -> bool:
        """Whether this attempt is the one that counts here: a later attempt at the same job replaces it."""
        return self._running.get(running.job.id) is running

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs that have a slot or wait for one; those that need none now are left out."""
        return [running.job for running in self._running.values() if not running.is_idle]

    @property
    def num_sequences(self) -> int:
        """Slots that ``jobs`` take: one for each choice."""
        return sum(job.choices for job in self.jobs)

    def by_lane(self) -> tuple[dict[str, int], bool]:
        """The slots that ``jobs`` take, by lane, and whether any stream is held back; asked for every job taken, so it
        looks at each job once."""
        held: dict[str, int] = {}
        num_busy = 0
        for running in self._running.values():
            if not running.is_idle:
                num_busy += 1
                job = running.job
                held[job.lane] = held.get(job.lane, 0) + job.choices
        return held, num_busy < len(self._running)

    @property
    def num_idle(self) -> Mapping[str, int]:
        """The number of jobs that need no slot now, by tenant: streams that are held back to their tenant's rate, and
        those that wait for files."""
        return Counter(running.job.tenant for running in self._running.values() if running.is_idle)

    @property
    def is_full(self) -> bool:
        """Whether no more jobs may be held, streams that are held back included."""
        return len(self._running) >= _JOBS_PER_SLOT * self.slots

    # --- a job comes and goes

    def take(self, running: Running) -> None:
        """Takes the job in; one that has ended already only has its end to append."""
        self._running[running.job.id] = running
        if running.terminal is None:
            self.trials.took(running.job.id, crashes=running.crashes, is_mute=not running.tokens)
        self.news(running)
        for callback in self.on_enter:
            callback(running)

    def replace(self, lost: Running, attempt: Running) -> None:
        """A new attempt takes the place of one that was made here."""
        self._out(lost)
        attempt.take_over(lost)
        self.take(attempt)

    def forget(self, running: Running) -> None:
        """The job is no longer this worker's; its slot is free."""
        if not self.holds(running):
            return
        del self._running[running.job.id]
        self._out(running)
        if self.trials.gone(running.job.id):
            self._fill()  # the next suspects may enter now, or all others
        for callback in self.on_room:
            callback()

    # --- a job ends

    def end(self, running: Running, state: TurnState, code: str = "", message: str = "") -> None:
        """Ends the job from outside the engine, with the tokens that may be appended."""
        self._out(running)
        running.end(state, code, message)
        self.news(running)
        self.acquit(running)

    def cancel(self, running: Running) -> None:
        """Ends the job with what the log has of it: the log takes no more tokens of a cancelled job."""
        self._out(running)
        running.cancel()
        self.news(running)
        self.acquit(running)

    def stop(self, running: Running, code: str, message: str) -> None:
        """Ends the job as a complete answer that has reached its length."""
        self._out(running)
        running.stop(code, message)
        self.news(running)
        self.acquit(running)

    def acquit(self, running: Running) -> None:
        """A job that has ended is no suspect any more, however long its end takes to be written."""
        if self.trials.gone(running.job.id):
            self._fill()

    # --- the engine, and a job's time in it

    def restored(self) -> None:
        """A new engine is up after the last one's death, and jobs may be taken again."""
        self.has_engine = True
        self._fill()
        for callback in self.on_room:
            callback()

    def pause(self, running: Running) -> None:
        """Takes the job out of the engine because enough of its tokens are held back.

        A suspect is not paused: nobody else runs from the start of its trial until the engine has crashed or the
        suspects have gained their tokens, so that a pause would leave the engine idle.
        """
        if self.trials.is_suspect(running.job.id):
            return
        running.is_paused = True
        self._out(running)
        for callback in self.on_room:
            callback()

    def resume(self, running: Running) -> None:
        """Puts a paused job back into the engine."""
        running.is_paused = False
        self._fill()

    def await_files(self, running: Running) -> None:
        """The job waits for its adapter's files, which may take minutes: others have its slot meanwhile."""
        if running.awaits_files:
            return
        running.awaits_files = True
        if self.trials.postpone(running.job.id):
            self._fill()
        for callback in self.on_room:
            callback()

    def have_files(self, job_ids: Iterable[str]) -> None:
        """The files that these jobs wait for are here."""
        for job_id in job_ids:
            if (running := self._running.get(job_id)) is not None and running.awaits_files:
                running.awaits_files = False
                if not running.is_paused:
                    self.trials.try_now(job_id)
        self._fill()

    def lack_files(self, job_ids: Iterable[str]) -> None:
        """The files that these jobs wait for cannot be had. Each is told the name by which its own tenant knows them:
        another one may have registered the same files."""
        for running in filter(None, map(self._running.get, list(job_ids))):
            name = running.job.adapter.name if running.job.adapter else ""
            message = f"The files of the adapter '{name}' cannot be had now; the log says why."
            self.end(running, TurnState.FAILED, Failure.ADAPTER_UNAVAILABLE, message)

    def withdraw(self, running: Running) -> None:
        """Takes the job out of the engine because another worker is about to go on with it."""
        running.is_leaving = True
        self._out(running)

    def reinstate(self, running: Running) -> None:
        """Puts a job back that could not be handed over."""
        running.is_leaving = False
        self._fill()

    # --- a job and the log

    def news(self, running: Running) -> None:
        """The job has something to append to the log."""
        for callback in self.on_news:
            callback(running)

    def ask_log(self, running: Running) -> None:
        """Somebody may have cancelled the job: an append is made, empty if need be, whose answer says so."""
        running.must_ask = True
        self.news(running)

    def _out(self, running: Running) -> None:
        for callback in self.on_out:
            callback(running)

    def _fill(self) -> None:
        for callback in self.on_fill:
            callback()

"""Keeps a job's ledger while the job runs here. Knows no engine: it is told what enters, comes out and is lost."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from axon.domain.billing.ledger import Ledger, timed
from axon.domain.job import Job
from axon.domain.times import Attempt, Times, cause_of, missed, with_attempt, with_last
from axon.runtime.clock import Clock


class Tally:
    """The ledger of one attempt, which continues those of earlier attempts."""

    def __init__(self, job: Job, clock: Clock) -> None:
        self._job, self._clock = job, clock
        self.claimed_at, self._claimed_time = clock.monotonic(), clock.now()
        """Monotonic time at which this attempt began, and its Unix time."""
        self._ledger = Ledger(
            queued=job.num_prompt_tokens,
            attempts=1,
            queue_s=max(0.0, self._claimed_time - job.created),
            times=self._no_times(),
        )
        self._attempt: Attempt | None = None
        """This attempt, as it began."""
        self._restart_s: float | None = None
        """Seconds that a restart of the server took before this attempt; None without one."""
        self._begun: set[int] = set()
        """Choices that have had a token, in this attempt or an earlier one."""
        self._awaited: dict[int, int] = {}
        """Choices that have had no token since they entered the engine, with the output tokens they entered with."""
        self._is_replay = False
        self._is_silent = True
        """This attempt has emitted no token yet."""

    def _no_times(self) -> Times:
        return Times(self._job.arrived, self._job.loaded_s, self._job.request)

    @property
    def _times(self) -> Times:
        return self._ledger.times or self._no_times()

    def begin(
        self, epoch: int, *, me: str, claim_s: float, after: int, before: tuple[int, str], name: str = ""
    ) -> None:
        """Notes the attempt that begins here, behind those that the log knows. ``me`` is this worker's incarnation,
        ``before`` the epoch under which the job was held until now and its owner, which is empty if the job was given
        up."""
        last_epoch, owner = before
        times = self._times
        if (lost := missed(times, epoch=last_epoch, owner=owner)) is not None:
            times = with_attempt(times, lost)
        cause = cause_of(times, owner=owner, me=me) if self._restart_s is None else "restart"
        lost_s = self._restart_s or 0.0
        self._attempt = Attempt(epoch, me, self._claimed_time, claim_s, None, after, cause, name, lost_s)
        self._ledger = replace(self._ledger, times=with_attempt(times, self._attempt))

    def claim_again(self, epoch: int) -> None:
        """The attempt goes on under a new epoch, because the log had forgotten the job."""
        self._ledger = replace(self._ledger, times=with_last(self._times, epoch=epoch))

    def resume(self, logged: Ledger | None, *, attempts: int, begun: Iterable[int]) -> None:
        """Continues the ledger in the log of earlier attempts; the choices in ``begun`` are computed again."""
        self._ledger = replace(logged or self._ledger, attempts=attempts + 1)
        self._begun |= set(begun)
        self._is_replay = attempts > 0

    def take_over(self, lost: "Tally", *, num_lost: int) -> None:
        """Continues the tally of an attempt that was made here; ``num_lost`` of its tokens are computed again."""
        times = lost._times
        if self._attempt is not None:
            times = with_attempt(times, msgspec.structs.replace(self._attempt, cause="engine"))
        self._ledger = replace(lost._ledger, attempts=lost._ledger.attempts + 1, times=times)
        self._ledger = replace(self._ledger, replayed=self._ledger.replayed + num_lost)
        self._begun |= lost._begun
        self._is_replay = True

    def come_back(self, kept: Ledger | None) -> None:
        """The job has come through a restart of the server, which kept this ledger of it; None if it kept none, so
        that nobody knows when the job was first claimed."""
        kept_until = kept.times.noted_at if kept and kept.times else 0.0
        lost_s = max(0.0, self._claimed_time - max(kept_until, self._job.created))
        self._restart_s = lost_s
        ledger = self._ledger if kept else replace(self._ledger, queue_s=0.0)
        self._ledger = replace(ledger, restarts=ledger.restarts + 1, restart_s=ledger.restart_s + lost_s)

    def await_start(self, ready_at: float) -> None:
        """The job waited for a worker to start; this one could take jobs from the Unix time ``ready_at`` on."""
        start_s = min(max(0.0, ready_at - self._job.created), self._ledger.queue_s)
        self._ledger = replace(self._ledger, start_s=start_s)

    def leave_unbegun(self) -> None:
        """The job ends here, and neither this attempt nor an earlier one has computed anything of it."""
        self._ledger = Ledger(times=self._no_times())

    def enter(self, choice: int, num_outputs: int) -> None:
        """A choice enters the engine with this many output tokens."""
        self._awaited[choice] = num_outputs

    def emit(self, choice: int, cached: int) -> None:
        """The engine emitted a token of a choice; ``cached`` prompt tokens were in the KV cache when it entered."""
        if choice not in self._awaited:
            return
        num_outputs = self._awaited.pop(choice)
        num_prompt, ledger = len(self._job.prompt_of(choice)), self._ledger
        if choice in self._begun:
            ledger = replace(ledger, replayed=ledger.replayed + num_prompt + num_outputs - cached)
        else:
            ledger = replace(ledger, prefilled=ledger.prefilled + num_prompt - cached, cached=ledger.cached + cached)
        if self._is_silent:
            self._is_silent = False
            took_s = max(0.0, self._clock.monotonic() - self.claimed_at)
            ledger = replace(ledger, times=with_last(self._times, silent_s=took_s))
            if self._is_replay:
                ledger = replace(ledger, replay_s=ledger.replay_s + took_s)
            else:
                ledger = replace(ledger, prefill_s=took_s)
        self._begun.add(choice)
        self._ledger = ledger

    def waste(self, num_tokens: int = 1) -> None:
        """Counts tokens that were computed and reach nobody."""
        self._ledger = replace(self._ledger, wasted=self._ledger.wasted + num_tokens)

    def wait(self, seconds: float) -> None:
        """The job had no place in the engine's steps for these seconds."""
        self._ledger = replace(self._ledger, waited_s=self._ledger.waited_s + seconds)

    def hold_back(self, seconds: float) -> None:
        """The job was held back to its tenant's rate for these seconds."""
        self._ledger = replace(self._ledger, paced_s=self._ledger.paced_s + seconds)

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1 on."""
        return self._ledger.attempts

    def so_far(self, num_emitted: int) -> Ledger:
        """The ledger of a job that runs, with this many tokens in its stream."""
        times = msgspec.structs.replace(self._times, noted_at=self._clock.now())
        return replace(self._ledger, emitted=num_emitted, times=times)

    def closed(self, num_emitted: int) -> Ledger:
        """The ledger at the job's end."""
        whole_s = self._clock.now() - self._job.created
        return timed(self.so_far(num_emitted), whole_s=whole_s, has_begun=bool(self._begun))

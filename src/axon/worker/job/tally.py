"""Keeps a job's ledger while the job runs here. Knows no engine: it is told what enters, comes out and is lost."""

from collections.abc import Iterable
from dataclasses import replace

from axon.domain.job import Job
from axon.domain.ledger import Ledger, timed
from axon.runtime.clock import Clock


class Tally:
    """The ledger of one attempt, which continues those of earlier attempts."""

    def __init__(self, job: Job, clock: Clock) -> None:
        self._job, self._clock = job, clock
        self._claimed_at = clock.monotonic()
        self._ledger = Ledger(queued=job.num_prompt_tokens, attempts=1, queue_s=max(0.0, clock.now() - job.created))
        self._begun: set[int] = set()
        """Choices that have had a token, in this attempt or an earlier one."""
        self._awaited: dict[int, int] = {}
        """Choices that have had no token since they entered the engine, with the output tokens they entered with."""
        self._is_replay = False
        self._is_silent = True
        """This attempt has emitted no token yet."""

    def resume(self, logged: Ledger | None, *, attempts: int, begun: Iterable[int]) -> None:
        """Continues the ledger in the log of earlier attempts; the choices in ``begun`` are computed again."""
        self._ledger = replace(logged or self._ledger, attempts=attempts + 1)
        self._begun |= set(begun)
        self._is_replay = attempts > 0

    def take_over(self, lost: "Tally", *, num_lost: int) -> None:
        """Continues the tally of an attempt that was made here; ``num_lost`` of its tokens are computed again."""
        self._ledger = replace(lost._ledger, attempts=lost._ledger.attempts + 1)
        self._ledger = replace(self._ledger, replayed=self._ledger.replayed + num_lost)
        self._begun |= lost._begun
        self._is_replay = True

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
            took_s = max(0.0, self._clock.monotonic() - self._claimed_at)
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

    def so_far(self, num_emitted: int) -> Ledger:
        """The ledger of a job that runs, with this many tokens in its stream."""
        return replace(self._ledger, emitted=num_emitted)

    def closed(self, num_emitted: int) -> Ledger:
        """The ledger at the job's end."""
        whole_s = self._clock.now() - self._job.created
        return timed(self.so_far(num_emitted), whole_s=whole_s, has_begun=bool(self._begun))

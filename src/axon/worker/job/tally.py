"""Keeps a job's ledger while it runs here. Knows no engine: it is told what enters, what comes out and what is lost."""

from collections.abc import Iterable
from dataclasses import replace

from axon.domain.job import Job
from axon.domain.ledger import Ledger, timed
from axon.runtime.clock import Clock


class Tally:
    """Of one attempt; goes on from what earlier ones have told."""

    def __init__(self, job: Job, clock: Clock) -> None:
        self._job, self._clock = job, clock
        self._claimed_at = clock.monotonic()
        self._ledger = Ledger(queued=job.num_prompt_tokens, attempts=1, queue_s=max(0.0, clock.now() - job.created))
        self._begun: set[int] = set()
        """Choices that have had a token, in whichever attempt."""
        self._awaited: dict[int, int] = {}
        """Choices that have come into the engine and had no token since, with the tokens they came with."""
        self._is_replay = False
        self._is_silent = True
        """This attempt has brought nothing new yet."""

    def go_on(self, told: Ledger | None, *, attempts: int, begun: Iterable[int]) -> None:
        """Earlier attempts were made: what they told counts, and what they had begun is done again."""
        self._ledger = replace(told or self._ledger, attempts=attempts + 1)
        self._begun |= set(begun)
        self._is_replay = attempts > 0

    def take_over(self, lost: "Tally", *, num_lost: int) -> None:
        """The attempt before this one was made here, and is known better than by what it told."""
        self._ledger = replace(lost._ledger, attempts=lost._ledger.attempts + 1)
        self._ledger = replace(self._ledger, replayed=self._ledger.replayed + num_lost)
        self._begun |= lost._begun
        self._is_replay = True

    def enter(self, choice: int, num_outputs: int) -> None:
        """A choice comes into the engine with so many tokens of its own."""
        self._awaited[choice] = num_outputs

    def emit(self, choice: int, cached: int) -> None:
        """A token of a choice; ``cached`` tokens of its prompt were found computed when it came in."""
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
        """Tokens that go nowhere."""
        self._ledger = replace(self._ledger, wasted=self._ledger.wasted + num_tokens)

    def wait(self, seconds: float) -> None:
        """It had no place in the engine for so long."""
        self._ledger = replace(self._ledger, waited_s=self._ledger.waited_s + seconds)

    def pace(self, seconds: float) -> None:
        """It was held back for so long."""
        self._ledger = replace(self._ledger, paced_s=self._ledger.paced_s + seconds)

    def so_far(self, num_emitted: int) -> Ledger:
        return replace(self._ledger, emitted=num_emitted)

    def closed(self, num_emitted: int) -> Ledger:
        """The ledger at the job's end."""
        whole_s = self._clock.now() - self._job.created
        return timed(self.so_far(num_emitted), whole_s=whole_s, has_begun=bool(self._begun))

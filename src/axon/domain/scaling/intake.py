"""The work that comes in, from what workers have taken and what waits: nobody has to count requests at the gateways.

A request that comes either is taken by a worker or makes the queue longer. Workers report what they have taken, with
answers by their predicted lengths; a job that waits counts as the mean of those that were taken. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from axon.domain.scaling.finite import amount
from axon.domain.scaling.work import Work
from axon.domain.tenants.tenant import Tier

_FIRST = Work(prompt=200.0, answer=200.0)
"""The work that a job is assumed to be before the first one was taken."""
_NONE = Work()
_MEMORY = 1000.0
"""Jobs after which an older one counts half as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """All that was taken up to a time. The counts only grow."""

    jobs: float = 0.0
    """Choices of the jobs."""
    work: Work = field(default_factory=Work)
    """Prompt tokens that no cache holds, and tokens of the answers, both predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What is remembered between two looks."""

    at: float | None = None
    taken: Taken = field(default_factory=Taken)
    waiting: float = 0.0
    _jobs: float = 0.0
    _work: Work = field(default_factory=Work)

    @property
    def job(self) -> Work:
        """The mean work of a job, over the last thousand or so."""
        return _times(self._work, 1 / self._jobs) if self._jobs > 0 else _FIRST

    def look(self, now: float, taken: Taken, waiting: float) -> tuple[Work, "Intake"]:
        """The work per second that came since the last look, and the memory for the next one; ``now`` rises."""
        jobs = amount(taken.jobs - self.taken.jobs)
        work = Work(
            prompt=amount(taken.work.prompt - self.taken.work.prompt),
            answer=amount(taken.work.answer - self.taken.work.answer),
        )
        kept = 0.5 ** (jobs / _MEMORY)
        after = replace(
            self,
            at=now,
            taken=taken,
            waiting=waiting,
            _jobs=kept * self._jobs + jobs,
            _work=_times(self._work, kept) + work,
        )
        if self.at is None or now <= self.at:
            return Work(), after
        grown = _times(after.job, waiting - self.waiting)
        seconds = now - self.at
        came = Work(prompt=max(0.0, work.prompt + grown.prompt), answer=max(0.0, work.answer + grown.answer))
        return _times(came, 1 / seconds), after

    def backlog(self, waiting: Mapping[Tier, float], *, pending: Work = _NONE) -> dict[Tier, Work]:
        """The work of the jobs that wait, by tier; ``pending`` is of prompts that were taken and wait in their workers,
        whose tiers are not reported."""
        found = {tier: _times(self.job, num) for tier, num in waiting.items() if num > 0}
        if pending.tokens:
            found[Tier.DEFAULT] = found.get(Tier.DEFAULT, _NONE) + pending
        return found


def _times(work: Work, number: float) -> Work:
    return Work(prompt=work.prompt * number, answer=work.answer * number)

"""The work that comes in, from what has begun and what waits: nobody has to count requests at the gateways. Pure.

A request that comes either begins (its first token) or makes the queue longer. What has begun is told by workers, with
answers by their predicted lengths; a job that waits counts as the mean of those that have begun.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from axon.domain.scaling.finite import amount
from axon.domain.scaling.work import Work
from axon.domain.tenant import Tier

_FIRST = Work(prompt=200.0, answer=200.0)
"""The work of a job while none has begun."""
_MEMORY = 1000.0
"""Jobs after which an older one counts half as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """All that has begun up to a time. The counts only grow."""

    jobs: float = 0.0
    """Choices that have had a first token."""
    work: Work = field(default_factory=Work)
    """Prompt tokens that were computed for them, and the predicted tokens of their answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """What is remembered between two looks."""

    at: float | None = None
    begun: Begun = field(default_factory=Begun)
    waiting: float = 0.0
    _jobs: float = 0.0
    _work: Work = field(default_factory=Work)

    @property
    def job(self) -> Work:
        """The mean work of a job, over the last thousand or so."""
        return _times(self._work, 1 / self._jobs) if self._jobs > 0 else _FIRST

    def look(self, now: float, begun: Begun, waiting: float) -> tuple[Work, "Intake"]:
        """The work per second that came since the last look, and the memory for the next one; ``now`` rises."""
        jobs = amount(begun.jobs - self.begun.jobs)
        work = Work(
            prompt=amount(begun.work.prompt - self.begun.work.prompt),
            answer=amount(begun.work.answer - self.begun.work.answer),
        )
        kept = 0.5 ** (jobs / _MEMORY)
        after = replace(
            self,
            at=now,
            begun=begun,
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

    def backlog(self, waiting: Mapping[Tier, float]) -> dict[Tier, Work]:
        """The work of the jobs that wait, by tier."""
        return {tier: _times(self.job, num) for tier, num in waiting.items() if num > 0}


def _times(work: Work, number: float) -> Work:
    return Work(prompt=work.prompt * number, answer=work.answer * number)

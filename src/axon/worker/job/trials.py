"""Finds the job that crashes the engine (a poison message) by running suspects alone. No I/O, no clock.

A crash makes suspects of the jobs that were in the step. Each suspect is tried alone in the engine. It is cleared when
it has gained enough tokens, more for a job that was in more crashes, and gets a strike when the engine crashes before
it has gained any. A job with too many strikes is guilty. A crash proves nothing against a job that makes progress.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

_QUOTA = 8
"""Tokens that clear a suspect after its first crash; each further crash multiplies them by as much again."""
_LONGEST_QUOTA = 512
"""Tokens that clear a suspect after any number of crashes."""


@dataclass(slots=True)
class _Record:
    crashes: int = 0
    strikes: int = 0


class Trials:
    """The suspects, in the order in which they are tried; jobs are known by id."""

    def __init__(self, *, strike_limit: int) -> None:
        self._strike_limit = strike_limit
        self._records: dict[str, _Record] = {}
        self._suspects: deque[str] = deque()

    @property
    def suspect(self) -> str | None:
        """The job on trial, alone in the engine; None when all jobs may run."""
        return self._suspects[0] if self._suspects else None

    def is_suspect(self, job_id: str) -> bool:
        """Whether the job is on trial or waits for its trial."""
        return job_id in self._suspects

    def crashed(self, gained: Mapping[str, int]) -> list[str]:
        """The engine died in a step of these jobs; takes the tokens that each had gained. Returns the guilty jobs."""
        for job_id in gained:
            record = self._records.setdefault(job_id, _Record())
            record.crashes += 1
            if job_id not in self._suspects:
                self._suspects.append(job_id)
        if len(gained) != 1:
            return []
        [(job_id, tokens)] = gained.items()
        record = self._records[job_id]
        record.strikes = 0 if tokens else record.strikes + 1
        if record.strikes < self._strike_limit:
            return []
        self.gone(job_id)
        return [job_id]

    def gained(self, job_id: str, tokens: int) -> bool:
        """The job has gained this many tokens since it entered the engine; True when that clears the suspect."""
        if job_id != self.suspect or tokens < min(_QUOTA ** self._records[job_id].crashes, _LONGEST_QUOTA):
            return False
        self._suspects.popleft()
        return True

    def gone(self, job_id: str) -> None:
        """The job has ended, or left this worker."""
        self._records.pop(job_id, None)
        if job_id in self._suspects:
            self._suspects.remove(job_id)

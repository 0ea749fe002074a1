"""Which job crashes the engine? Suspects are run alone, so that a poisonous one ends by itself and takes nobody along.

A crash makes suspects of the jobs that were in the step. Each is tried alone: it is cleared when it has gained enough
tokens (more for one that was in more crashes), and gets a strike when it crashes the engine without gaining any. Too
many strikes, and it is guilty. A killed engine proves nothing against a job that makes progress. Pure.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

_QUOTA = 8
_LONGEST_QUOTA = 512


@dataclass(slots=True)
class _Record:
    crashes: int = 0
    strikes: int = 0


class Trials:
    """Knows jobs by id and counts tokens."""

    def __init__(self, *, strike_limit: int) -> None:
        self._strike_limit = strike_limit
        self._records: dict[str, _Record] = {}
        self._suspects: deque[str] = deque()

    @property
    def suspect(self) -> str | None:
        """The one job that may be in the engine; None when all may."""
        return self._suspects[0] if self._suspects else None

    def crashed(self, gained: Mapping[str, int]) -> list[str]:
        """The engine died with these jobs in it, each with the tokens it had gained there. Returns the guilty."""
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
        """The job has gained so many tokens since it came into the engine; True when that clears a suspect."""
        if job_id != self.suspect or tokens < min(_QUOTA ** self._records[job_id].crashes, _LONGEST_QUOTA):
            return False
        self._suspects.popleft()
        return True

    def gone(self, job_id: str) -> None:
        """The job is no longer here."""
        self._records.pop(job_id, None)
        if job_id in self._suspects:
            self._suspects.remove(job_id)

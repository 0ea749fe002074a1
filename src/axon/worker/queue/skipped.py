"""Jobs that this worker cannot run and leaves to others: each is looked past for a few seconds. Knows no queue."""

_SKIP_S = 5.0
"""Seconds for which a job that was given back is not given back again: whoever can run it takes it in this time."""


class Skipped:
    """The ids of jobs that were given back lately; old ones go when a new one comes."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def add(self, job_id: str, now: float) -> None:
        """The job was given back."""
        self._until = {each: until for each, until in self._until.items() if until > now}
        self._until[job_id] = now + _SKIP_S

    def has(self, job_id: str, now: float) -> bool:
        """Whether the job was given back so lately that it is kept out of the way instead."""
        return self._until.get(job_id, now) > now

"""Residence: the worker that holds a session's KV blocks, as recorded at the end of a turn. Knows no service."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from axon.domain.fairness.lane import is_of_pool
from axon.domain.job import Job
from axon.domain.presence import Presence


@dataclass(frozen=True, slots=True, kw_only=True)
class Residence:
    """A worker that has computed a session's tokens and may still hold their KV blocks."""

    v: int = 1
    worker: str
    """The worker's name, which its own lane has too."""
    incarnation: str
    """Id of the worker's run; after a restart the worker holds nothing."""
    num_prompt: int
    """Prompt tokens of the last turn; a turn that continues it has more."""
    num_tokens: int
    """Tokens of prompt and answer together."""
    num_blocks: int
    at: float
    """Unix time of the turn's end."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a later version, kept as they came."""


def choose_worker(
    job: Job, residence: Residence | None, presences: Iterable[Presence], *, now: float, max_age_s: float
) -> Presence | None:
    """The worker to whose own lane the turn goes, or None for its tenant's lane.

    The turn must continue what the worker holds; the worker must be alive and not draining, in the turn's pool, on its
    version, and have free slots for it. With a single worker both lanes lead to it, so the tenant's lane is used.
    """
    if residence is None or now - residence.at > max_age_s or len(job.prompt_ids) <= residence.num_prompt:
        return None
    serving = _serving(job, presences)
    for presence in serving:
        if presence.incarnation == residence.incarnation and len(serving) > 1:
            return presence if not presence.draining and presence.load.free_slots >= job.choices else None
    return None


def choose_near(job: Job, presences: Iterable[Presence], *, zone: str) -> Presence | None:
    """The worker of the zone that a turn without a residence goes to: the one with most free slots. None where no
    worker of the zone has some, or where all workers are of it: then the tenant's lane leads there as well."""
    serving = _serving(job, presences)
    near = [each for each in serving if each.zone == zone and not each.draining]
    roomy = [each for each in near if each.load.free_slots >= job.choices]
    if not zone or not roomy or len(near) == len(serving):
        return None
    return max(roomy, key=lambda each: (each.load.free_slots, each.worker))


def _serving(job: Job, presences: Iterable[Presence]) -> list[Presence]:
    """The workers of the job's version and pool."""
    return [
        presence
        for presence in presences
        if presence.deployment.version == job.version and is_of_pool(job.lane, job.deployment, presence.pool)
    ]

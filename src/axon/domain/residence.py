"""Where a session's blocks are: what a worker said at the end of its last turn. Knows no service that carries it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from axon.domain.job import Job
from axon.domain.lane import is_of_pool
from axon.domain.presence import Presence


@dataclass(frozen=True, slots=True, kw_only=True)
class Residence:
    """A worker that has computed a session's tokens, and may still hold them."""

    v: int = 1
    worker: str
    """Its name, and so its own lane's."""
    incarnation: str
    """A later life of the same worker holds nothing."""
    num_prompt: int
    """Tokens of the last turn's prompt: a turn that goes on from it has more."""
    num_tokens: int
    """Prompt and answer together: the place of the last token."""
    num_blocks: int
    at: float
    """Unix time of the turn's end."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a later version, kept as they came."""


def place(
    job: Job, residence: Residence | None, presences: Iterable[Presence], *, now: float, max_age_s: float
) -> Presence | None:
    """The worker whose own lane the turn goes to, or None: then its tenant's lane is the right one.

    It must go on from what is held there; the worker must live, stay, work for its pool, serve its version and have
    room for it. With no second worker its lane leads to the same place.
    """
    if residence is None or now - residence.at > max_age_s or len(job.prompt_ids) <= residence.num_prompt:
        return None
    serving = [
        presence
        for presence in presences
        if presence.deployment.version == job.version and is_of_pool(job.lane, job.deployment, presence.pool)
    ]
    for presence in serving:
        if presence.incarnation == residence.incarnation and len(serving) > 1:
            return presence if not presence.draining and presence.load.free_slots >= job.choices else None
    return None

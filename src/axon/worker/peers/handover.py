"""Chooses the jobs that other workers should go on with. Pure functions of what is held here and announced elsewhere.

No more jobs are chosen than others have free slots: a job that waits in a lane is worse off than one that runs here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from axon.domain.presence import Presence


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The facts about a job in this worker's hands that the choice depends on."""

    job_id: str
    slots: int
    """Slots that it takes in an engine."""
    num_left: int
    """Tokens that it may still emit."""
    waited_s: float = 0.0
    """Seconds for which it has had no place in the engine's steps."""


def room_elsewhere(presences: Iterable[Presence], *, me: str, version: str, pool: str = "") -> int:
    """Free slots of the other workers that could go on with this worker's jobs; ``me`` is an incarnation."""
    return sum(
        presence.load.free_slots
        for presence in presences
        if presence.incarnation != me
        and presence.pool == pool
        and not presence.draining
        and version in ("", presence.deployment.version)
    )


def leaving(held: Sequence[Held], *, room: int) -> list[str]:
    """For a worker that drains: the jobs with most tokens left first, because they would delay its end the most."""
    return _fitting(sorted(held, key=lambda each: each.num_left, reverse=True), room)


def crowded(held: Sequence[Held], *, room: int, patience_s: float) -> list[str]:
    """For a worker that has too few slots or KV blocks: the jobs that waited ``patience_s`` or more, longest first."""
    waiting = [each for each in held if each.waited_s >= patience_s]
    return _fitting(sorted(waiting, key=lambda each: each.waited_s, reverse=True), room)


def _fitting(held: Iterable[Held], room: int) -> list[str]:
    chosen = []
    for each in held:
        if each.slots <= room:
            room -= each.slots
            chosen.append(each.job_id)
    return chosen

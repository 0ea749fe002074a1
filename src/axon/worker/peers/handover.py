"""Which jobs should another worker go on with? Pure: decisions over what this worker holds and what the others say.

Nobody is given more than there is room for: a job that waits in a lane is worse off than one that goes on here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from axon.domain.presence import Presence


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A job in this worker's hands, as far as it matters here."""

    job_id: str
    slots: int
    """Places it takes in an engine."""
    num_left: int
    """Tokens it may still emit."""
    waited_s: float = 0.0
    """How long it has had no place in the engine's steps."""


def room_elsewhere(presences: Iterable[Presence], *, me: str, version: str, pool: str = "") -> int:
    """Free slots of the other workers that could go on with this one's jobs; ``me`` is an incarnation."""
    return sum(
        presence.load.free_slots
        for presence in presences
        if presence.incarnation != me
        and presence.pool == pool
        and not presence.draining
        and version in ("", presence.deployment.version)
    )


def leaving(held: Sequence[Held], *, room: int) -> list[str]:
    """Of a worker that is to end: the longest first, because they would be waited for the longest."""
    return _fitting(sorted(held, key=lambda each: each.num_left, reverse=True), room)


def crowded(held: Sequence[Held], *, room: int, patience_s: float) -> list[str]:
    """Of a worker whose blocks do not suffice: who has waited for longer than is bearable, the longest first."""
    waiting = [each for each in held if each.waited_s >= patience_s]
    return _fitting(sorted(waiting, key=lambda each: each.waited_s, reverse=True), room)


def _fitting(held: Iterable[Held], room: int) -> list[str]:
    chosen = []
    for each in held:
        if each.slots <= room:
            room -= each.slots
            chosen.append(each.job_id)
    return chosen

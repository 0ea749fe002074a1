"""Work, delivered at least once, taken in the order we ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

OWN_TTL_S = 1.0
"""How long a job waits in a worker's own lane before it goes to the lane it belongs to."""
OWN_MAX_WAITING = 32
"""Jobs that may wait in an own lane; who offers looks at the worker's free slots besides."""
LANE_UNKNOWN = "lane_unknown"
"""The code of a publish to a lane that was never declared: no retry would change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A job's body in a worker's hands, until it is acked or given back."""

    tag: int
    lane: str
    """The one it belongs to, whichever way it came."""
    body: bytes
    redelivered: bool
    """False means: nobody has seen it before."""
    own: bool = False
    """It came by its taker's own lane."""


class Queue(Protocol):
    """Lanes of jobs. A delivery that is neither acked nor given back returns when its taker is gone."""

    async def declare(self, lanes: Sequence[str]) -> None:
        """Makes the lanes; the ones that exist stay as they are."""

    async def publish(self, lane: str, body: bytes) -> None:
        """Returns when the queue has it for good; raises ``DependencyDown`` when that is not known."""

    async def take(self, lanes: Sequence[str]) -> Delivery | None:
        """The oldest delivery of the first lane that has one; None at once when none has."""

    async def ack(self, delivery: Delivery) -> None:
        """The job has ended; twice is harmless."""

    async def give_back(self, delivery: Delivery) -> None:
        """Somebody else should run it; it comes first in its lane."""

    async def depths(self, lanes: Sequence[str]) -> Mapping[str, int]:
        """Jobs waiting in each lane, the taken ones not counted."""


class OwnLanes(Protocol):
    """A short lane for each worker, taken from by its name as any other. Nothing is lost in it: what waits for longer
    than ``OWN_TTL_S``, or is given back after that, goes to the lane it belongs to."""

    async def declare_own(self, own: str) -> None:
        """Makes a worker's own lane; one that exists stays as it is."""

    async def offer(self, own: str, lane: str, body: bytes) -> bool:
        """Puts a job that belongs to ``lane`` into an own lane, for good; False when that is full or not there."""


class Lanes(Queue, OwnLanes, Protocol):
    """All of them together."""

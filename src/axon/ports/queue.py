"""Work, delivered at least once, taken in the order we ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

LANE_UNKNOWN = "lane_unknown"
"""The code of a publish to a lane that was never declared: no retry would change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A job's body in a worker's hands, until it is acked or given back."""

    tag: int
    lane: str
    body: bytes
    redelivered: bool
    """False means: nobody has seen it before."""


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

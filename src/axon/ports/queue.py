"""The queue: jobs in lanes, delivered at least once. A taker chooses the order of lanes with each call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

OWN_TTL_S = 1.0
"""Seconds that a job waits in a worker's own lane before it moves to its tenant's lane."""
OWN_MAX_WAITING = 32
"""Jobs that may wait in an own lane; an offer depends on the worker's free slots besides."""
LANE_UNKNOWN = "lane_unknown"
"""Error code of a publish to an undeclared lane; a retry would not help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A job's body as a worker holds it until it acks it or gives it back."""

    tag: int
    lane: str
    """The tenant's lane of the job, also when it came by an own lane."""
    body: bytes
    redelivered: bool
    """False only on the first delivery."""
    own: bool = False
    """Whether it came by its taker's own lane."""


class Queue(Protocol):
    """Lanes of jobs. A delivery that is neither acked nor given back returns when its taker is gone."""

    async def declare(self, lanes: Sequence[str]) -> None:
        """Creates the lanes; existing ones stay as they are."""

    async def publish(self, lane: str, body: bytes) -> None:
        """Returns when the queue has stored the job durably; raises ``DependencyDown`` when that is unknown."""

    async def take(self, lanes: Sequence[str]) -> Delivery | None:
        """Takes the oldest job of the first lane that is not empty; returns None at once when all are."""

    async def ack(self, delivery: Delivery) -> None:
        """Acknowledges a delivery whose job has ended. Idempotent."""

    async def give_back(self, delivery: Delivery) -> None:
        """Returns a delivery to the front of its lane, for another worker."""

    async def depths(self, lanes: Sequence[str]) -> Mapping[str, int]:
        """Number of jobs that wait in each lane, without the taken ones."""


class OwnLanes(Protocol):
    """A short lane for each worker, taken from by name like any other. A job that waits in it for longer than
    ``OWN_TTL_S``, or is given back after that, moves to its tenant's lane, so none is lost."""

    async def declare_own(self, own: str) -> None:
        """Creates a worker's own lane; an existing one stays as it is."""

    async def offer(self, own: str, lane: str, body: bytes) -> bool:
        """Puts a job of ``lane`` durably into an own lane; False when the own lane is full or missing."""


class Lanes(Queue, OwnLanes, Protocol):
    """Tenants' lanes and own lanes together."""

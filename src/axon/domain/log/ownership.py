"""Ownership of a job: whether a worker may claim it, decided from the token log's view of it by pure functions."""

from dataclasses import dataclass
from enum import Enum

from axon.domain.log.chunk import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """The token log's state of one job, with its chunks past a reader's cursor."""

    body: bytes
    """The job, encoded, so that it can be dispatched again."""
    epoch: int
    """Epoch of the last claim; 0 before the first."""
    owner: str
    """The worker incarnation that holds it; empty when released or never claimed."""
    last: int
    """Seq of the last token; 0 for none."""
    ended: bool
    cancelled: bool
    """Whether the job was cancelled, or its reader has been away for longer than the grace time."""
    asked: bool = False
    """Whether the job's client asked for its cancellation."""
    refused: bool = False
    """Whether it is cancelled because its acceptance was not confirmed, which its client was told."""
    absent: bool = False
    """Whether it is cancelled for no other reason than that its reader is away."""
    chunks: tuple[Chunk, ...] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job that was claimed."""

    epoch: int
    crashes: int = 0
    """Engines that have died with the job in their step, as the last release said; 0 after the log lost its memory."""


class ClaimStep(Enum):
    """A worker's next step with a delivery."""

    CLAIM = "claim"
    PARK = "park"
    """Another owner is alive: keep the delivery and watch, without claiming."""
    FINISH = "finish"
    """The job has ended: repeat the steps after the terminal append, run nothing."""
    CANCEL = "cancel"
    """Claim it only to write its end."""


def claim_step(view: LogView, *, me: str, owner_alive: bool) -> ClaimStep:
    """Decides what a worker does with a delivered job."""
    if view.ended:
        return ClaimStep.FINISH
    if view.owner and view.owner != me and owner_alive:
        return ClaimStep.PARK
    return ClaimStep.CANCEL if view.cancelled else ClaimStep.CLAIM


def next_epoch(stored: int, now: float) -> int:
    """The next epoch: higher than the stored one and, after a log lost its memory, than any before (ms of Unix
    time)."""
    return max(stored, int(now * 1000)) + 1

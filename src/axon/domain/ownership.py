"""Who may run a job: decisions over what the token log says about it. Pure."""

from dataclasses import dataclass
from enum import Enum

from axon.domain.chunk import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """What the token log holds of one job, from a reader's cursor on."""

    body: bytes
    """The job, encoded, so that it can be dispatched again."""
    epoch: int
    """Of the last claim; 0 before the first."""
    owner: str
    """The worker incarnation that holds it; empty when released or never claimed."""
    last: int
    """Seq of the last token; 0 for none."""
    ended: bool
    cancelled: bool
    """Somebody asked for its end, or its reader has been away for longer than the grace time."""
    chunks: tuple[Chunk, ...] = ()


class ClaimStep(Enum):
    """What to do with a delivery."""

    CLAIM = "claim"
    PARK = "park"
    """Its owner is alive: keep the delivery, watch, steal nothing."""
    FINISH = "finish"
    """It has ended: repeat what comes after the terminal append, run nothing."""
    CANCEL = "cancel"
    """Claim it only to write its end."""


def claim_step(view: LogView, *, me: str, owner_alive: bool) -> ClaimStep:
    """What a worker does with a job it was handed."""
    if view.ended:
        return ClaimStep.FINISH
    if view.owner and view.owner != me and owner_alive:
        return ClaimStep.PARK
    return ClaimStep.CANCEL if view.cancelled else ClaimStep.CLAIM


def next_epoch(stored: int, now: float) -> int:
    """Grows with every claim, also over a log that lost everything."""
    return max(stored, int(now * 1000)) + 1

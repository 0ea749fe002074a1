"""When a turn's steps happened: what its ledger keeps besides sums, enough to draw its trace. Values only."""

import msgspec

_MAX_ATTEMPTS = 16
"""Attempts that are kept of one turn: the first and the last ones."""


class Attempt(msgspec.Struct, frozen=True, array_like=True):
    """One worker's attempt at a job: it lasts from its claim to the next attempt's, or to the turn's end."""

    epoch: int
    """Epoch of its claim; 0 where it is not known."""
    worker: str = ""
    """The worker incarnation that claimed the job; empty where it is not known."""
    claimed_at: float = 0.0
    """Unix time at which the job was claimed and its stream rebuilt."""
    claim_s: float = 0.0
    """Seconds that the claim took, before ``claimed_at``."""
    silent_s: float | None = None
    """Seconds from the claim to its first token; None while it has computed none."""
    after: int = 0
    """Tokens in the stream that earlier attempts computed."""
    cause: str = ""
    """Why it followed the attempt before: ``lost``, ``handed_over`` or ``engine``; empty for the first one.
    ``restart`` if the server was restarted before it."""
    name: str = ""
    """The worker's name, the same after a restart, as logs and metrics have it; empty where it is not known."""
    restart_s: float = 0.0
    """Seconds up to ``claimed_at`` that a restart of the server has taken from the job."""


class Times(msgspec.Struct, frozen=True, array_like=True):
    """The times of one turn."""

    arrived: float = 0.0
    """Unix time at which its request arrived; 0 where it is not known."""
    loaded_s: float = 0.0
    """Seconds from its admission to its publication: history, prompt and tokens."""
    request: str = ""
    """The id of its request."""
    attempts: tuple[Attempt, ...] = ()
    noted_at: float = 0.0
    """Unix time at which this was written down; 0 where it is not known."""


def with_attempt(times: Times, attempt: Attempt) -> Times:
    """The times with one more attempt; of many, the first and the last ones stay."""
    attempts = (*times.attempts, attempt)
    if len(attempts) > _MAX_ATTEMPTS:
        attempts = (attempts[0], *attempts[2:])
    return msgspec.structs.replace(times, attempts=attempts)


def with_last(times: Times, **changes: float | int | None) -> Times:
    """The times with some fields of the last attempt changed."""
    if not times.attempts:
        return times
    last = msgspec.structs.replace(times.attempts[-1], **changes)
    return msgspec.structs.replace(times, attempts=(*times.attempts[:-1], last))


def claimed_at_of(epoch: int) -> float:
    """About the Unix time at which an epoch was claimed: epochs are milliseconds (``next_epoch``)."""
    return max(0, epoch - 1) / 1000


def missed(times: Times, *, epoch: int, owner: str) -> Attempt | None:
    """The attempt that held the job under this epoch, if the times do not know it: it was lost, or gave the job up,
    before it wrote its first chunk. None where nobody held the job, or the times know the attempt."""
    if not epoch or (times.attempts and times.attempts[-1].epoch >= epoch):
        return None
    return Attempt(epoch=epoch, worker=owner, claimed_at=claimed_at_of(epoch))


def cause_of(times: Times, *, owner: str, me: str) -> str:
    """Why a claim follows the last attempt. ``owner`` is who held the job when it was claimed, empty if it was given
    up; ``me`` claims it."""
    if not times.attempts:
        return ""
    if owner and owner != me:
        return "lost"
    return "engine" if times.attempts[-1].worker == me else "handed_over"

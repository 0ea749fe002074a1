"""A word to idle workers: where a job waits, and whose it is, so that they can decide without asking the queue.

May be lost or come twice; nothing rests on it but speed and order. A text, so that a worker of an earlier release,
which heard lanes by their bare names, reads a lane that it does not know.
"""

from dataclasses import dataclass

import msgspec

from axon.domain.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """What a worker has to know of a job before it takes it."""

    lane: str
    """Where it waits now."""
    home: str = ""
    """The lane it belongs to, where that is another."""
    tenant: str | None = None
    """None: nobody knows, as of a bare name."""
    weight: float = 1.0
    reserved: float = 0.0


def hint_of(job: Job, lane: str = "") -> Hint:
    """The hint at a job that waits in its own tenant's lane, or in another one."""
    return Hint(
        lane=lane or job.lane,
        home=job.lane if lane else "",
        tenant=job.tenant,
        weight=job.weight,
        reserved=job.reserved,
    )


def encode_hint(hint: Hint) -> bytes:
    return msgspec.json.encode(hint)


def decode_hint(payload: bytes) -> Hint:
    """The hint in these bytes; a bare name is that of a lane."""
    if payload.startswith(b"{"):
        try:
            return msgspec.json.decode(payload, type=Hint)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return Hint(lane="")
    return Hint(lane=payload.decode(errors="replace"))

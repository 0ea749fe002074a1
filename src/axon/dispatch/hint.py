"""A hint: notifies idle workers of a waiting job, so that they can decide without polling the queue.

Hints may be lost or repeated; only speed and order depend on them. A hint is JSON text: a worker of an earlier release,
which expects the bare name of a lane, reads it as a lane that it does not know.
"""

from dataclasses import dataclass

import msgspec

from axon.domain.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """Facts about a waiting job that a worker needs before it takes it."""

    lane: str
    """The lane in which it waits."""
    home: str = ""
    """Its tenant's lane, where it waits in another one."""
    tenant: str | None = None
    """None when unknown, as in an earlier release's hint."""
    weight: float = 1.0
    reserved: float = 0.0


def hint_of(job: Job, lane: str = "") -> Hint:
    """The hint for a job that waits in its tenant's lane, or in ``lane`` if given."""
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
    """Decodes a hint; text that is no JSON object is the name of a lane."""
    if payload.startswith(b"{"):
        try:
            return msgspec.json.decode(payload, type=Hint)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return Hint(lane="")
    return Hint(lane=payload.decode(errors="replace"))

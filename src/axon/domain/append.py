"""May this chunk be written? The compare-and-set of the token log, as one pure rule that every adapter keeps."""

from enum import StrEnum

from axon.domain.chunk import Chunk


class AppendStatus(StrEnum):
    OK = "ok"
    FENCED = "fenced"
    """A later attempt owns the job: drop the sequence, keep the delivery until that one has ended it."""
    GAP = "gap"
    """The log ends at ``last``: send again from the next one."""
    DONE = "done"
    """Somebody ended it: drop, then ack."""
    CANCEL = "cancel"
    """Not written: end the job as cancelled."""
    MISSING = "missing"
    """The log does not know the job: claim again if the lease holds, and send everything from seq 1."""


def judge(chunk: Chunk, *, epoch: int, last: int, ended: bool, cancelled: bool) -> AppendStatus:
    """What becomes of a chunk in a stream that stands so; a terminal one ends the job whatever was asked for."""
    if ended:
        return AppendStatus.DONE
    if chunk.epoch != epoch:
        return AppendStatus.FENCED
    if chunk.first != last + 1:
        return AppendStatus.GAP
    if cancelled and not chunk.terminal:
        return AppendStatus.CANCEL
    return AppendStatus.OK

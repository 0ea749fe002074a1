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
    """Not written, somebody has asked for the job's end: end it as cancelled, with what the log has."""
    ABSENT = "absent"
    """Not written, its reader has been away for too long: end it as cancelled as well."""
    MISSING = "missing"
    """The log does not know the job: claim again if the lease holds, and send everything from seq 1."""


def judge(chunk: Chunk, *, epoch: int, last: int, ended: bool, cancelled: bool, absent: bool = False) -> AppendStatus:
    """What becomes of a chunk in a stream that stands so.

    Once its end was asked for, a stream takes no more tokens, and any end without one: what comes after the stop is
    neither read nor billed. An absent reader keeps no answer from being complete.
    """
    if ended:
        return AppendStatus.DONE
    if chunk.epoch != epoch:
        return AppendStatus.FENCED
    if chunk.first != last + 1:
        return AppendStatus.GAP
    if cancelled and (chunk.tokens or not chunk.terminal):
        return AppendStatus.CANCEL
    if absent and not chunk.terminal:
        return AppendStatus.ABSENT
    return AppendStatus.OK

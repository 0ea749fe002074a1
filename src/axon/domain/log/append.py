"""Compare-and-set rule of the token log: whether a chunk may be written. One pure function that every adapter obeys."""

from enum import StrEnum

from axon.domain.log.chunk import Chunk


class AppendStatus(StrEnum):
    OK = "ok"
    FENCED = "fenced"
    """A later attempt owns the job (fencing by epoch): drop the sequence, keep the delivery until that attempt ends."""
    GAP = "gap"
    """The log ends at ``last``: send again from the next token."""
    DONE = "done"
    """The stream has ended: drop the sequence, then ack the delivery."""
    CANCEL = "cancel"
    """The chunk was not written because the job was cancelled: end it as cancelled, with the tokens in the log."""
    ABSENT = "absent"
    """The chunk was not written because the reader has been away for too long: end the job as cancelled."""
    MISSING = "missing"
    """The log does not know the job: claim again if the lease holds, and send everything from seq 1."""


def judge(chunk: Chunk, *, epoch: int, last: int, ended: bool, cancelled: bool, absent: bool = False) -> AppendStatus:
    """Decides whether a chunk may be appended to a stream in this state.

    A cancelled stream takes no more tokens, and takes any terminal chunk without tokens: tokens after the stop are
    neither read nor billed. A terminal chunk is written even if the reader is absent.
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

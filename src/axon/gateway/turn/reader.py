"""A reader of a stream: who it is, and when its gateway polls for it. No I/O, no clock; knows no HTTP."""

from collections.abc import Callable
from dataclasses import dataclass, field

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.turn import Turn

_FIRST_REREAD_S = 1.0
"""The log is read again after this much silence, in case a wake-up was lost."""
_MAX_REREAD_S = 5.0
"""While the silence lasts, the log is read at least this often."""
_FIRST_STORE_READ_S = 3.0
"""The store is asked for the turn's end after this much silence."""


@dataclass(slots=True, eq=False)
class Reader:
    """A client that follows a stream: the job it waits for, and the API key that it showed."""

    job: Job | None = None
    key_id: str = ""
    found: Turn | None = None
    """The turn as the client's request found it, if the client came back to a turn that existed."""
    is_revoked: bool = False
    """Whether the key was revoked while the reader followed."""
    saw: Callable[[Chunk], None] | None = None
    """Called with each chunk that the reader is sent; None where its request is not traced."""

    @property
    def end(self) -> Turn | None:
        """The turn, if it had ended before this reader came; otherwise None.

        The reader gets this end if the log does not have it. A log that lost its tail never shows the end, and without
        this the reader would have to wait through the silence after which the store is asked.
        """
        return self.found if self.found is not None and self.found.state.terminal else None

    def ttl_s(self, longest_s: float) -> float:
        """Returns the seconds for which one heartbeat keeps the turn running for this reader."""
        return (self.job.reader_ttl_s(longest_s) if self.job else None) or longest_s


@dataclass(slots=True)
class PollTimer:
    """Decides when to read the log again and when to ask the store for one reader. Times are monotonic seconds."""

    last_chunk_at: float
    """Time at which the stream last had something new; at first, when the reader came."""
    end: Turn | None = None
    """The turn, if its end was known before the log was read."""
    last_sent_at: float = field(init=False)
    """Time at which the reader was last sent something: a chunk, or a keep-alive that says there is none."""
    heartbeat_at: float = field(init=False)
    """Time at which the log last accepted a heartbeat, which says that the stream has a reader."""
    heartbeat_failed: bool = False
    """Whether the last heartbeat was lost, so that it must be repeated soon."""
    is_claimed: bool = False
    """Whether a worker has been seen to have claimed the turn."""
    down_since: float | None = None
    """Time since which the log has not answered; None while it does."""
    _silence_at_store_read_s: float = 0.0
    _was_beyond: bool = False

    def __post_init__(self) -> None:
        self.last_sent_at = self.heartbeat_at = self.last_chunk_at

    def chunk_sent(self, now: float) -> None:
        """Notes that the stream had something new, which the reader is sent now."""
        self.last_chunk_at = self.last_sent_at = now

    def reread_in_s(self, now: float) -> float:
        """Returns the seconds after which to read the log without a wake-up: the silence so far, within bounds.

        The interval may grow because wake-ups are seldom lost: a broken connection to ``live`` wakes every reader.
        """
        return min(max(_FIRST_REREAD_S, now - self.last_chunk_at), _MAX_REREAD_S)

    def store_is_due(self, now: float, *, is_beyond: bool) -> bool:
        """Whether to ask the store now if the turn has ended; if so, notes that it was asked.

        ``is_beyond`` says that the reader's position is beyond the last token of the log: the log has lost its tail,
        and perhaps the end with it, so the store is asked at once. Otherwise the store is asked after some silence, and
        again each time that the silence has doubled (exponential backoff).
        """
        silence_s = now - self.last_chunk_at
        if silence_s < self._silence_at_store_read_s:
            self._silence_at_store_read_s = 0.0
        newly_beyond = is_beyond and not self._was_beyond
        self._was_beyond = is_beyond
        due = newly_beyond or silence_s >= max(_FIRST_STORE_READ_S, 2 * self._silence_at_store_read_s)
        if due:
            self._silence_at_store_read_s = silence_s
        return due

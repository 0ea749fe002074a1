"""A reader's place in a stream: which chunks it may take, and when it must read the log again. Pure."""

from dataclasses import dataclass
from enum import Enum

from axon.domain.chunk import Chunk


class Reread(Enum):
    """The chunk does not follow what the reader has: read the log from the cursor."""

    GAP = "gap"


@dataclass(slots=True)
class Cursor:
    """Where one reader stands. ``seq`` is the last token it has."""

    seq: int = 0
    ended: bool = False

    def take(self, chunk: Chunk) -> Chunk | Reread | None:
        """The unread part of a chunk; None when all of it was read before."""
        if chunk.first > self.seq + 1:
            return Reread.GAP
        if self.ended or (chunk.last <= self.seq and not chunk.terminal and not chunk.ends):
            return None
        fresh = chunk.after(self.seq)
        self.seq = max(self.seq, fresh.last)
        self.ended = bool(fresh.terminal)
        return fresh

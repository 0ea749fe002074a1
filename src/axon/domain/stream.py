"""A reader's place in a stream: which chunks it may take, and when it must read the log again. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from axon.domain.chunk import Chunk
from axon.domain.turn import TurnState
from axon.errors import StreamDiverged


class Reread(Enum):
    """The chunk does not simply follow what the reader has: read the log."""

    GAP = "gap"
    """Tokens are missing in between."""
    ATTEMPT = "attempt"
    """Another attempt wrote it: compare before going on."""


@dataclass(slots=True)
class Cursor:
    """Where one reader stands. ``seq`` is the last token it has, ``start`` the one it had when it came."""

    seq: int = 0
    ended: bool = False
    start: int = field(init=False)
    _ids: list[int] = field(default_factory=list)
    _epoch: int | None = None

    def __post_init__(self) -> None:
        self.start = self.seq

    def take(self, chunk: Chunk) -> Chunk | Reread | None:
        """The unread part of a chunk; None when all of it was read before.

        Raises ``StreamDiverged`` when it completes the stream before the reader's place.
        """
        if self.ended:
            return None
        if chunk.first > self.seq + 1:
            return Reread.GAP
        if chunk.last <= self.seq and not chunk.terminal:
            return None
        if self._epoch is not None and chunk.epoch != self._epoch and self._ids:
            return Reread.ATTEMPT
        if chunk.last < self.seq and chunk.terminal == TurnState.COMPLETED:
            raise StreamDiverged(
                f"The stream is complete with {chunk.last} tokens, fewer than the {self.seq} before this place; "
                "read the whole answer again."
            )
        self._epoch = chunk.epoch
        fresh = chunk.after(self.seq)
        self._ids += [token.id for token in fresh.tokens]
        self.seq = fresh.last
        self.ended = bool(fresh.terminal)
        return fresh

    def take_all(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The unread part of the whole stream past ``start``, which may have been written anew.

        Raises ``StreamDiverged`` when it says something else than what this reader was given.
        """
        ids = [token.id for chunk in chunks for token in chunk.after(self.start).tokens]
        known = len(self._ids)
        if ids[:known] != self._ids[: len(ids)]:
            raise StreamDiverged()
        terminal = chunks[-1].terminal if chunks else ""
        if len(ids) < known and not terminal:
            return []  # still being written again: what it says next is not known to follow
        if len(ids) < known and terminal == TurnState.COMPLETED:
            raise StreamDiverged()
        return self.take_run(chunks)

    def must_compare(self, chunks: Sequence[Chunk]) -> bool:
        """Whether chunks read past the cursor come from another attempt than what the reader has."""
        return bool(self._ids and chunks) and chunks[0].epoch != self._epoch

    def take_run(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The unread part of chunks that follow each other in the log, whoever wrote them."""
        fresh = []
        for chunk in chunks:
            self._epoch = chunk.epoch
            if isinstance(taken := self.take(chunk), Chunk):
                fresh.append(taken)
        return fresh

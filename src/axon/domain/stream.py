"""A reader's cursor in a stream: which chunks follow, and when the log must be read again. No I/O, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from axon.domain.log.chunk import Chunk
from axon.domain.turn import TurnState
from axon.errors import StreamDiverged


class Reread(Enum):
    """The reason to read the log: the chunk does not directly follow what the reader has."""

    GAP = "gap"
    """Tokens are missing in between."""
    ATTEMPT = "attempt"
    """Another attempt wrote the chunk: compare its tokens with those already read."""


@dataclass(slots=True)
class Cursor:
    """One reader's position. ``seq`` is the last token that it has, ``start`` the one it had at the beginning."""

    seq: int = 0
    ended: bool = False
    start: int = field(init=False)
    _ids: list[int] = field(default_factory=list)
    _epoch: int | None = None

    def __post_init__(self) -> None:
        self.start = self.seq

    def take(self, chunk: Chunk) -> Chunk | Reread | None:
        """The unread part of a chunk; None when all of it was read before.

        Raises ``StreamDiverged`` when the stream completes before the reader's position.
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
        """The unread part of the whole stream past ``start``, which another attempt may have written again.

        Raises ``StreamDiverged`` when its tokens differ from those that this reader was given.
        """
        ids = [token.id for chunk in chunks for token in chunk.after(self.start).tokens]
        known = len(self._ids)
        if ids[:known] != self._ids[: len(ids)]:
            raise StreamDiverged()
        terminal = chunks[-1].terminal if chunks else ""
        if len(ids) < known and not terminal:
            return []  # the new attempt is behind the reader: its next tokens cannot be compared yet
        if len(ids) < known and terminal == TurnState.COMPLETED:
            raise StreamDiverged()
        return self.take_run(chunks)

    def must_compare(self, chunks: Sequence[Chunk]) -> bool:
        """Whether chunks read past the cursor come from another attempt than the tokens already read."""
        return bool(self._ids and chunks) and chunks[0].epoch != self._epoch

    def take_run(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The unread part of consecutive chunks of the log, of any attempts."""
        fresh = []
        for chunk in chunks:
            self._epoch = chunk.epoch
            if isinstance(taken := self.take(chunk), Chunk):
                fresh.append(taken)
        return fresh

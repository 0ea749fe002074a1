"""The masks of one span's draws: which tokens the grammar allows at each. Filled while the step is computed."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from axon.engine.grammar.matcher import GrammarMatcher

Words = npt.NDArray[np.uint32]
"""A bit for each token, the lowest id in the lowest bit: 1 where a grammar allows it."""


class SpanMasks:
    """The masks of a span: of its draw, and of the draw behind each of its draft tokens."""

    def __init__(
        self, matcher: "GrammarMatcher", position: int, drafts: Sequence[int], banned: Sequence[Collection[int]]
    ) -> None:
        """``banned`` are the tokens, for each draw, that are forbidden unless the grammar allows no other."""
        self.matcher = matcher
        self.wait: Callable[[], object] | None = None
        """Waits for the thread that fills them; None while nobody does."""
        self._position = position
        self._drafts = drafts
        self._banned = banned
        self._rows: Words | None = None
        self._allows: list[bool] = []
        """Whether each row allows any token."""

    @property
    def is_single(self) -> bool:
        return not self._drafts

    def learn(self, token: int) -> None:
        """Takes in the token before the span's draw, if that was not known when the span was planned."""
        self.matcher.learn(self._position - 1, token)

    def of(self, index: int) -> "DrawMask":
        """The mask of one of the span's draws."""
        return DrawMask(self, index)

    def rows(self) -> Words:
        """A row for each draw; waits for them, or fills them itself."""
        if self.wait is not None:
            self.wait()
        if self._rows is None:
            self.fill()
        assert self._rows is not None
        return self._rows

    def fill(self) -> None:
        """Asks the matcher."""
        rows = np.zeros((1 + len(self._drafts), self.matcher.vocabulary.num_words), np.uint32)
        if self.matcher.is_open:
            assert self.matcher.num_taken == self._position, "the tokens before a draw are known"
            try:
                self.matcher.fill(rows, self._drafts)
            except BaseException as error:  # a panic of the parser is no Exception
                if isinstance(error, (KeyboardInterrupt, SystemExit)):
                    raise
                rows[:] = 0
                self.matcher.fail(str(error))
        self.take(rows)

    def take(self, rows: Words) -> None:
        """Takes in the masks that the grammar gives, and forbids what is banned."""
        if self.matcher.problem:
            rows[:] = 0
        self._allows = [_forbid(row, banned) for row, banned in zip(rows, self._banned, strict=True)]
        if not self._allows[0] and self.matcher.is_open:
            self.matcher.fail("no token of the model can follow")
        self._rows = rows

    def is_empty(self, index: int) -> bool:
        """Whether no token is allowed at one of the draws; waits for the masks."""
        self.rows()
        return not self._allows[index]


def _forbid(row: Words, banned: Collection[int]) -> bool:
    """Forbids tokens unless no other is allowed; returns whether any token is. Looks through the row once if it can:
    this runs for every token of an answer with a grammar."""
    places = [(id // 32, np.uint32(1 << id % 32)) for id in banned if id // 32 < len(row)]
    words = [row[place] for place, _ in places]
    for place, bit in places:
        row[place] &= ~bit
    if row.max():
        return True
    for (place, _), word in zip(places, words, strict=True):
        row[place] = word
    return any(words)


class DrawMask:
    """The mask of one draw."""

    __slots__ = ("index", "masks")

    def __init__(self, masks: SpanMasks, index: int) -> None:
        self.masks = masks
        self.index = index

    def words(self) -> Words:
        """A bit for each token; waits for them."""
        row: Words = self.masks.rows()[self.index]
        return row

    def allowed_ids(self) -> list[int]:
        """The tokens, in ascending order; waits for them."""
        ids: list[int] = np.flatnonzero(np.unpackbits(self.words().view(np.uint8), bitorder="little")).tolist()
        return ids

    @property
    def is_empty(self) -> bool:
        """Whether no token is allowed."""
        return self.masks.is_empty(self.index)

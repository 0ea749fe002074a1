"""The masks of one span's draws: which tokens the grammar allows at each. Filled while the step is computed."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from axon.engine.grammar.matcher import GrammarMatcher

Words = npt.NDArray[np.uint32]
"""A bit for each token, the lowest id in the lowest bit: 1 where a grammar allows it."""
_FIRST_WORDS = 64


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
        self._note(rows, forbid(rows, self._banned))

    def _note(self, rows: Words, allows: list[bool]) -> None:
        self._rows, self._allows = rows, allows
        if not allows[0] and self.matcher.is_open:
            self.matcher.fail("no token of the model can follow")

    def is_empty(self, index: int) -> bool:
        """Whether no token is allowed at one of the draws; waits for the masks."""
        self.rows()
        return not self._allows[index]


def take_together(masks: Sequence[SpanMasks], rows: Words) -> None:
    """Takes in one row each for spans without drafts, as ``SpanMasks.take`` does."""
    for index, each in enumerate(masks):
        if each.matcher.problem:
            rows[index] = 0
    allows = forbid(rows, [each._banned[0] for each in masks])
    for index, each in enumerate(masks):
        each._note(rows[index : index + 1], allows[index : index + 1])


def forbid(rows: Words, banned: Sequence[Collection[int]]) -> list[bool]:
    """Forbids tokens of each row unless no other is allowed there; returns for each row whether any token is.

    This runs for every token of an answer with a grammar, so all rows are looked at together.
    """
    before: dict[int, list[tuple[int, np.uint32]]] = {}
    for index, ids in enumerate(banned):
        for place, bit in (divmod(id, 32) for id in ids if id // 32 < rows.shape[1]):
            before.setdefault(index, []).append((place, rows[index, place]))
            rows[index, place] &= ~np.uint32(1 << bit)
    allows = _have_any(rows)
    for index in (index for index in before if not allows[index]):
        for place, word in reversed(before[index]):
            rows[index, place] = word
        allows[index] = any(word for _, word in before[index])
    return allows


def _have_any(rows: Words) -> list[bool]:
    """Whether each row allows any token. Most allow one of the first, which are those of single bytes."""
    found = rows[:, :_FIRST_WORDS].max(axis=1)
    return [bool(first) or bool(rows[index].max()) for index, first in enumerate(found.tolist())]


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
    def is_alone(self) -> bool:
        """Whether it is the only one of its span."""
        return self.masks.is_single

    @property
    def is_empty(self) -> bool:
        """Whether no token is allowed."""
        return self.masks.is_empty(self.index)

"""Where one sequence stands in its grammar: takes in its output tokens, says which may come next. Knows no scheduler.

It is never told an end token, so that every token it took in can be taken back.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from axon.engine.grammar.mask import SpanMasks, Words
from axon.engine.grammar.vocabulary import Vocabulary

if TYPE_CHECKING:
    from llguidance import LLMatcher

_MAX_CHARS = 300


class GrammarMatcher:
    """The state of a grammar behind a number of output tokens."""

    def __init__(self, compiled: "LLMatcher", vocabulary: Vocabulary) -> None:
        """``compiled`` is a matcher at the grammar's start, which stays as it is."""
        self.state = compiled.deep_copy()
        self._compiled = compiled
        self._taken: list[int] = []
        self.vocabulary = vocabulary
        self.eos_ids = vocabulary.eos_ids
        self.num_taken = 0
        """Output tokens that it took in."""
        self.problem = ""
        """Why it can say nothing any more; empty while it can."""
        self._has_ended = False

    def learn(self, position: int, token: int) -> None:
        """Takes in the output token of a position, unless it has taken it in already."""
        if position < self.num_taken or self.problem or self._has_ended:
            return
        assert position == self.num_taken, "tokens are taken in one by one"
        self.num_taken += 1
        if token in self.eos_ids:
            self._has_ended = True
        elif self.state.consume_token(token):
            self._taken.append(token)
        else:
            self.fail(self.state.get_error() or f"token {token} does not follow the grammar")

    def legal(self, token_ids: Sequence[int]) -> list[int]:
        """The longest prefix of the tokens that may come next, up to the first end token."""
        ended = next((index for index, id in enumerate(token_ids) if id in self.eos_ids), len(token_ids))
        token_ids = list(token_ids[:ended])
        if not token_ids or not self.is_open:
            return []
        return token_ids[: self.state.validate_tokens(token_ids)]

    def forced(self) -> list[int]:
        """The tokens that must come next, as far as the grammar leaves no choice."""
        forced = self.state.compute_ff_tokens() if self.is_open else []
        return forced[: next((index for index, id in enumerate(forced) if id in self.eos_ids), len(forced))]

    def masks(self, position: int, drafts: Sequence[int], banned: Sequence[Collection[int]]) -> SpanMasks:
        """The masks of a draw and of those behind draft tokens, to be filled later."""
        return SpanMasks(self, position, drafts, banned)

    def fill(self, rows: Words, drafts: Sequence[int] = ()) -> None:
        """Writes the masks of the next token, and of the token behind each draft token; zeros where there is none."""
        self.state.unsafe_compute_mask_ptr(rows[0].ctypes.data, rows[0].nbytes)
        self.note_error()
        num_tried = 0
        for row, token in zip(rows[1:], drafts, strict=True):
            if self.problem or not self.state.try_consume_tokens([token]):
                break
            num_tried += 1
            self.state.unsafe_compute_mask_ptr(row.ctypes.data, row.nbytes)
            if self.state.is_error():
                row[:] = 0
                break
        if num_tried and (self.state.is_error() or not self.state.rollback(num_tried)):
            self._rebuild()  # what fails behind a draft may never come

    def note_error(self) -> None:
        """Makes an error of the parser this matcher's problem."""
        if self.state.is_error():
            self.fail(self.state.get_error())

    def fail(self, problem: str) -> None:
        self.problem = self.problem or said(problem)

    @property
    def is_open(self) -> bool:
        """Whether it can say what comes next."""
        return not self.problem and not self._has_ended

    def _rebuild(self) -> None:
        self.state = self._compiled.deep_copy()
        self.state.consume_tokens(self._taken)
        self.note_error()


def said(problem: str) -> str:
    """The first words of llguidance's message, which goes on with its whole state."""
    return problem.split("<state>")[0].replace("<non-verbose/>", "").strip()[:_MAX_CHARS]

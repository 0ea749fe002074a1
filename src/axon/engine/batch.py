"""One step's work as a value, and what comes of it. Knows no tensors and no scheduler."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from axon.domain.sampling import Sampling

PLACEHOLDER = -1
"""Stands for the token that the step before is still to draw; see ``fill``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """How the token after a span is chosen; position is its index among the choice's output tokens."""

    sampling: Sampling
    seed: int
    choice: int
    position: int
    prompt_ids: tuple[int, ...] = ()
    """Only where the sampling penalises them."""
    output_ids: tuple[int, ...] = ()
    """The tokens before this one, only where the sampling penalises them."""
    banned_ids: tuple[int, ...] = ()
    """Tokens that would end the choice too early."""
    given: int | None = None
    """The token that stands there already: nothing is drawn, it is only asked how likely it was."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The token of a draw, and how likely the model found it and others, where the sampling asks."""

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    """Token ids and logprobs, most likely first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Consecutive tokens of one sequence, computed by one step.

    |<- first ->|<- token_ids ->|<- known, but of a later step ->|

    Where it has drafts, as many of its last tokens are guesses at what is drawn behind the token before each.
    """

    id: str
    first: int
    """Position of the first token; what stands before it is computed already."""
    token_ids: tuple[int, ...]
    block_ids: tuple[int, ...]
    """The sequence's blocks from position 0 on, those of this span included."""
    draw: Draw | None = None
    """None while known tokens remain: nothing is sampled after a chunk that is not the last."""
    drafts: tuple[Draw, ...] = ()
    """What is drawn behind each guess, should it and all before it be right."""
    scores: tuple[Draw, ...] = ()
    """Of a prompt whose logprobs are asked for: how likely its tokens were, behind those that the draw is not behind.
    It has no drafts then, and all that is asked stands behind its last tokens."""
    arrival: int = 0
    """Tells the sequence from another one that is given the same id."""
    admission: int = 0
    """How often the sequence has been given blocks: tells whether it still holds those of this span."""

    @property
    def end(self) -> int:
        """Tokens computed once the step is done."""
        return self.first + len(self.token_ids)

    @property
    def is_stream(self) -> bool:
        """Whether of what is known only the newest token is computed."""
        return self.draw is not None and len(self.token_ids) == 1 + len(self.drafts)

    @property
    def draws(self) -> tuple[Draw, ...]:
        return self.scores if self.draw is None else (*self.scores, self.draw, *self.drafts)

    def num_right(self, drawn: Sequence[Drawn]) -> int:
        """How many of its guesses are what was drawn, up to the first that is not."""
        guesses = self.token_ids[len(self.token_ids) - len(self.drafts) :]
        return next((place for place, guess in enumerate(guesses) if guess != drawn[place].token), len(guesses))


@dataclass(frozen=True, slots=True)
class Batch:
    """A step: spans of different sequences, one behind the other."""

    spans: tuple[Span, ...] = ()

    @property
    def num_tokens(self) -> int:
        return sum(len(span.token_ids) for span in self.spans)

    @property
    def draws(self) -> list[Draw]:
        """The draws of the spans that have any, in order: one token is sampled for each."""
        draws: list[Draw] = []
        for span in self.spans:
            if span.scores:
                draws += span.scores
            if span.draw is not None:
                draws.append(span.draw)
                draws += span.drafts
        return draws

    @property
    def output_rows(self) -> list[int]:
        """Of the batch's tokens, one behind the other, those that a token is drawn behind."""
        rows: list[int] = []
        end = 0
        for span in self.spans:
            end += len(span.token_ids)
            rows += range(end - len(span.draws), end)
        return rows


def fill(batch: Batch, latest: Mapping[str, int]) -> Batch:
    """Puts the tokens that the step before has drawn, by sequence id, in the places that were kept for them."""
    return Batch(tuple(_fill_span(span, latest) for span in batch.spans))


def _fill_span(span: Span, latest: Mapping[str, int]) -> Span:
    if span.token_ids[-1] != PLACEHOLDER:
        return span
    token = latest[span.id]
    draw = span.draw
    if draw is not None and draw.output_ids:
        draw = replace(draw, output_ids=(*draw.output_ids[:-1], token))
    return replace(span, token_ids=(*span.token_ids[:-1], token), draw=draw)

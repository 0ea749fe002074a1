"""One step's work as a value, and the results of its draws. Knows no tensors and no scheduler."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from axon.domain.sampling import Sampling
from axon.engine.constraint import Mask, Masks
from axon.engine.copies import Copies

PLACEHOLDER = -1
"""Stands for the token that the step before is still to draw; see ``fill``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Parameters by which the token behind a computed token is chosen."""

    sampling: Sampling
    seed: int
    choice: int
    position: int
    """Index of the new token among the choice's output tokens."""
    prompt_ids: tuple[int, ...] = ()
    """The prompt, given only where the sampling penalises its tokens."""
    output_ids: tuple[int, ...] = ()
    """The output tokens before this one, given only where the sampling penalises them."""
    banned_ids: tuple[int, ...] = ()
    """Tokens that would end the choice too early."""
    mask: Mask | None = None
    """The tokens that the sampling's grammar allows here; None without a grammar. It is filled beside the step."""
    given: int | None = None
    """A prompt token to score: nothing is drawn, and the result says how likely this token was."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The token of a draw, with the model's log probabilities where the sampling asks for them."""

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()
    """Token ids and log probabilities, most likely first."""
    rank: int | None = None
    """Rank of a given token among all tokens, from 1: the most likely first, the lower id first among equals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Consecutive tokens of one sequence, computed by one step.

    |<- first ->|<- token_ids ->|<- known, but of a later step ->|

    With drafts, as many of its last tokens are draft tokens: each is accepted if it is the token drawn before it.
    """

    id: str
    first: int
    """Position of the first token; the tokens before it are computed already."""
    token_ids: tuple[int, ...]
    block_ids: tuple[int, ...]
    """The sequence's blocks from position 0 on, those of this span included."""
    draw: Draw | None = None
    """The draw behind the last known token; None for a chunk of a prompt that is not its last."""
    drafts: tuple[Draw, ...] = ()
    """The draws behind the draft tokens, one for each."""
    scores: tuple[Draw, ...] = ()
    """Draws that score prompt tokens. A span with scores has no drafts, and all its draws stand behind its last
    tokens, one behind each."""
    arrival: int = 0
    """Tells the sequence from a later one that is given the same id."""
    admission: int = 0
    """Number of times that the sequence was given blocks: shows whether it still holds those of this span."""
    adapter: str = ""
    """Digest of the LoRA adapter that its rows are computed with; empty for the model itself."""

    @property
    def end(self) -> int:
        """Tokens of the sequence that are computed once the step is done."""
        return self.first + len(self.token_ids)

    @property
    def is_stream(self) -> bool:
        """Whether only the newest known token is computed: a decode, with or without drafts."""
        return self.draw is not None and len(self.token_ids) == 1 + len(self.drafts)

    @property
    def draws(self) -> tuple[Draw, ...]:
        return self.scores if self.draw is None else (*self.scores, self.draw, *self.drafts)

    @property
    def drawn(self) -> tuple[Draw, ...]:
        """Its draws that choose a token: that behind its last known token, and those behind its drafts."""
        return () if self.draw is None else (self.draw, *self.drafts)

    def take_results(self, results: Iterator[Drawn]) -> tuple[list[Drawn], list[Drawn]]:
        """Takes the span's results off those of its batch: of its scores, and of its draw and drafts together."""
        scores = list(islice(results, len(self.scores))) if self.scores else []
        tokens = [next(results)] if self.draw is not None else []
        if self.drafts:
            tokens += islice(results, len(self.drafts))
        return scores, tokens

    def allowed(self, drawn: Sequence[Drawn]) -> Sequence[Drawn]:
        """The results of its draw and drafts, up to the first that its grammar leaves no token for."""
        draws = (self.draw, *self.drafts)
        empty = (index for index, draw in enumerate(draws) if draw is not None and draw.mask and draw.mask.is_empty)
        return drawn[: next(empty, len(drawn))]

    def num_accepted(self, drawn: Sequence[Drawn]) -> int:
        """Number of draft tokens that equal the tokens drawn at their positions, up to the first that does not."""
        drafts = self.token_ids[len(self.token_ids) - len(self.drafts) :]
        pairs = enumerate(zip(drafts, drawn, strict=False))
        return next((index for index, (draft, each) in pairs if draft != each.token), min(len(drafts), len(drawn) - 1))


@dataclass(frozen=True, slots=True)
class Batch:
    """A step: spans of different sequences, one behind the other."""

    spans: tuple[Span, ...] = ()
    copies: Copies | None = None
    """Copies of blocks beside the computation; None without a shelf or where there are none."""

    @property
    def is_empty(self) -> bool:
        """Whether the step does nothing."""
        return not self.spans and self.copies is None

    @property
    def num_tokens(self) -> int:
        return sum(len(span.token_ids) for span in self.spans)

    @property
    def draws(self) -> list[Draw]:
        """The draws of all spans in order; a runner returns one result for each."""
        draws: list[Draw] = []
        for span in self.spans:
            if span.scores:
                draws += span.scores
            if span.draw is not None:
                draws.append(span.draw)
                draws += span.drafts
        return draws

    @property
    def masks(self) -> list[Masks]:
        """The masks of the spans that have a grammar."""
        drawn = (span.draw for span in self.spans if span.draw is not None)
        return [draw.mask.masks for draw in drawn if draw.mask is not None]

    @property
    def output_rows(self) -> list[int]:
        """The rows, among the batch's tokens in order, that have a draw behind them."""
        rows: list[int] = []
        end = 0
        for span in self.spans:
            end += len(span.token_ids)
            rows += range(end - len(span.draws), end)
        return rows


def fill(batch: Batch, latest: Mapping[str, int]) -> Batch:
    """The batch with its placeholders replaced by the tokens that the step before has drawn, by sequence id."""
    return Batch(tuple(_fill_span(span, latest) for span in batch.spans), batch.copies)


def _fill_span(span: Span, latest: Mapping[str, int]) -> Span:
    if span.token_ids[-1] != PLACEHOLDER:
        return span
    token = latest[span.id]
    draw = span.draw
    if draw is not None and draw.mask is not None:
        draw.mask.masks.learn(token)
    if draw is not None and draw.output_ids:
        draw = replace(draw, output_ids=(*draw.output_ids[:-1], token))
    return replace(span, token_ids=(*span.token_ids[:-1], token), draw=draw)

"""One step's work as a value: which tokens of which sequences. Knows no tensors and no scheduler."""

from dataclasses import dataclass

from axon.domain.sampling import Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """How the token after a span is chosen; position is its index among the choice's output tokens."""

    sampling: Sampling
    seed: int
    choice: int
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Consecutive tokens of one sequence, computed by one step.

    |<- first ->|<- token_ids ->|<- known, but of a later step ->|
    """

    id: str
    first: int
    """Position of the first token; what stands before it is computed already."""
    token_ids: tuple[int, ...]
    block_ids: tuple[int, ...]
    """The sequence's blocks from position 0 on, those of this span included."""
    draw: Draw | None = None
    """None while known tokens remain: nothing is sampled after a chunk that is not the last."""

    @property
    def end(self) -> int:
        """Tokens computed once the step is done."""
        return self.first + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class Batch:
    """A step: spans of different sequences, one behind the other."""

    spans: tuple[Span, ...] = ()

    @property
    def num_tokens(self) -> int:
        return sum(len(span.token_ids) for span in self.spans)

    @property
    def draws(self) -> list[Draw]:
        """The draws of the spans that have one, in order: one token is sampled for each."""
        return [span.draw for span in self.spans if span.draw is not None]

"""The work of a draft model or head in one step and its answer, as values. Knows no model and no scheduler."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from axon.engine.batch import Draw

NEAR = 32
"""Most unseen tokens of a stream that the draft model computes in the batch of the first draft: they hardly cost more
than one. A stream with more of them is caught up first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftAsk:
    """A stream whose tokens the draft model computes, to draft the next ones behind them.

    |<- first ->|<- token_ids ->|<- num_drafts ->|
    """

    id: str
    first: int
    """Position of the first token; the draft model has computed those before it."""
    token_ids: tuple[int, ...]
    """The tokens of the stream that the draft model has not computed, or the next chunk of them."""
    block_ids: tuple[int, ...]
    """The stream's blocks from position 0 on. The draft model has KV memory of its own, with blocks of the same ids."""
    num_drafts: int = 0
    """Tokens to draft behind the stream's last token; with 0 the draft model only catches up."""
    draw: Draw | None = None
    """The draw of the first draft; None if nothing is drafted."""
    min_probability: float = 0.0
    """Least probability to be right with which a draft is worth its row in the target's step."""
    next_min_probability: float = 0.0
    """Least probability to be right with which a draft is worth its row and the batch of the draft model that guesses
    it."""
    is_probe: bool = False
    """Whether it is only asked to find out what drafts are worth."""
    arrival: int = 0
    """Tells the stream from a later one that is given the same id; see ``Span``."""
    admission: int = 0
    """Number of times that the stream was given blocks; see ``Span``."""

    @property
    def end(self) -> int:
        """Tokens of the stream that the draft model has computed afterwards, without drafts."""
        return self.first + len(self.token_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRound:
    """One batch of the draft model, measured."""

    num_tokens: int
    num_attended: int
    """Tokens that all its tokens together attend to."""
    seconds: float
    is_chunk: bool = False
    """Whether the batch had more than ``NEAR`` tokens of a stream on a device, which computes so many of one with other
    kernels: such batches have other costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """Draft tokens by stream, and what they took. A stream that is missing was not computed."""

    by_id: Mapping[str, list[int]] = field(default_factory=dict)
    rounds: tuple[DraftRound, ...] = ()
    is_probe: bool = False
    """Whether all of it was only to find out what drafts are worth."""
    num_accepted: int = 0
    """Drafts of these that the target model has accepted, once the step is settled."""
    num_looked_up: int = 0
    """Drafts of the step that came from elsewhere and were accepted, once the step is settled."""
    wait_s: float = 0.0
    """Seconds for which a device stood idle before the step, because the one before had to be settled first; without
    the draft model's own."""

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.rounds)


NOTHING_DRAFTED = Drafted()


class Drafts(Protocol):
    """Drafts for streams: a draft model, or a head of the target."""

    @property
    def max_len(self) -> int:
        """Most tokens of a stream that it can attend to."""
        ...

    @property
    def keeps_drafts(self) -> bool:
        """Whether what it has computed of its own drafts holds once they are accepted: a draft model's does. A head
        computes these tokens again, out of what the target knows by then."""
        ...

    @property
    def later(self) -> Callable[[], bool] | None:
        """Does a piece of what can wait, if there is any, and returns whether more is left."""
        ...

    def draft(self, asks: Sequence[DraftAsk]) -> Drafted:
        """Computes the asked tokens, and drafts behind them."""
        ...

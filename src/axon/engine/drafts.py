"""The work of the draft model in one step and its answer, as values. Knows no model and no scheduler."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from axon.engine.batch import Draw


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
    is_probe: bool = False
    """Whether it is only asked to find out what drafts are worth."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """Draft tokens by stream, and what they took. A stream that is missing was not computed."""

    by_id: Mapping[str, list[int]] = field(default_factory=dict)
    rounds: tuple[DraftRound, ...] = ()
    is_probe: bool = False
    """Whether all of it was only to find out what drafts are worth."""
    num_accepted: int = 0
    """Drafts of these that the target model has accepted, once the step is settled."""

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.rounds)


NOTHING_DRAFTED = Drafted()

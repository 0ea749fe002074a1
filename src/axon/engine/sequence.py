"""A job inside the engine: its tokens and how far they are computed. Owned and changed by the scheduler alone."""

from dataclasses import dataclass, field

from axon.engine.batch import Draw, Span
from axon.engine.blocks import chain_hashes
from axon.engine.messages import Add


@dataclass(slots=True, eq=False)
class Sequence:
    """Counters and lists only; everything else is derived from them."""

    add: Add
    block_size: int
    token_ids: list[int] = field(init=False)
    """Prompt and output."""
    num_computed: int = 0
    """Tokens whose KV stands in the blocks."""
    block_ids: list[int] = field(default_factory=list)
    hashes: list[bytes] = field(default_factory=list)
    """Of the full blocks of token_ids, as far as asked for."""

    def __post_init__(self) -> None:
        self.token_ids = [*self.add.prompt_ids, *self.add.output_ids]

    @property
    def id(self) -> str:
        return self.add.id

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def num_outputs(self) -> int:
        return len(self.token_ids) - len(self.add.prompt_ids)

    @property
    def num_pending(self) -> int:
        """Known tokens still to compute."""
        return len(self.token_ids) - self.num_computed

    def num_missing_blocks(self, num_tokens: int) -> int:
        """Blocks to add so that ``num_tokens`` find room."""
        return max(0, -(-num_tokens // self.block_size) - len(self.block_ids))

    def full_hashes(self, num_tokens: int) -> list[bytes]:
        """Hashes of the blocks that the first ``num_tokens`` fill."""
        num_full = num_tokens // self.block_size
        if len(self.hashes) < num_full:
            chain_hashes(self.hashes, self.token_ids, num_full, self.block_size, salt=self.add.tenant)
        return self.hashes[:num_full]

    def span(self, num_tokens: int) -> Span:
        """The next ``num_tokens`` pending tokens as work for a step."""
        end = self.num_computed + num_tokens
        draw = None
        if end == self.num_tokens:
            draw = Draw(
                sampling=self.add.sampling,
                seed=self.add.seed,
                choice=self.add.choice,
                position=self.num_outputs,
            )
        return Span(
            id=self.id,
            first=self.num_computed,
            token_ids=tuple(self.token_ids[self.num_computed : end]),
            block_ids=tuple(self.block_ids),
            draw=draw,
        )

"""Limits the length of a sequence by the sizes of its engine, and refuses one that cannot run. Pure functions."""

from dataclasses import dataclass

from axon.domain.failure import Failure
from axon.engine.protocol.messages import Add, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceLimits:
    """The sizes of an engine that limit its sequences."""

    max_model_len: int
    """Most tokens of prompt and answer together."""
    num_blocks: int
    block_size: int
    """Tokens of a block."""

    def max_blocks(self, add: Add) -> int:
        """Most blocks that all sequences of the tenant may hold together."""
        return min(max(1, int(add.kv_share * self.num_blocks)), self.num_blocks)

    def max_len(self, add: Add) -> int:
        """Most tokens of prompt and answer together: they must fit alone. The last token stands in no block."""
        return min(self.max_model_len, self.max_blocks(add) * self.block_size + 1)

    def refusal(self, add: Add) -> Refused | None:
        """The refusal of a sequence that the engine cannot run; None if it can."""
        num_tokens = len(add.prompt_ids) + len(add.output_ids)
        if not add.prompt_ids:
            return Refused(add.id, Failure.INVALID, "The prompt is empty.")
        if add.weight <= 0:
            return Refused(add.id, Failure.INVALID, "A tenant's weight must be more than 0.")
        if add.kv_share <= 0:
            return Refused(add.id, Failure.INVALID, "A tenant's KV share must be more than 0.")
        if len(add.output_ids) >= add.sampling.max_tokens:
            return Refused(add.id, Failure.INVALID, "Every token asked for has been emitted already.")
        has = f"The prompt has {num_tokens} tokens; prompt and answer together may have"
        if num_tokens >= self.max_model_len:
            return Refused(add.id, Failure.CONTEXT_TOO_LONG, f"{has} {self.max_model_len}.")
        if num_tokens >= self.max_len(add):
            return Refused(
                add.id, Failure.KV_SHARE_TOO_SMALL, f"{has} {self.max_len(add)} in its tenant's share of the blocks."
            )
        return None

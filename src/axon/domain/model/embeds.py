"""How a model that gives vectors is asked: their size, its prompts, its classes if it has some. Knows no weights."""

from dataclasses import dataclass

from axon.domain.model.classes import Classes

CHUNK_BYTES = 1 << 20
"""The vectors of one job travel as one chunk of the log of at most this many bytes; larger requests become several."""
BYTES_PER_NUMBER = 4
"""Vectors are float32, little-endian."""
_MOST_PAIR_TOKENS = 1 << 20
"""Tokens of the pairs of one job at most: a query stands in each of its pairs, so that pairs outgrow the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeds:
    """Facts of an embedding model, or of a classification model, whose vectors are logits, that a gateway needs."""

    dimensions: int
    """Numbers in a vector."""
    prompts: tuple[tuple[str, str], ...] = ()
    """Texts that are put before an input, each with its name, such as ``query``."""
    default_prompt: str = ""
    """Name of the prompt for requests that name none; empty for no prompt."""
    shorter: tuple[int, ...] = ()
    """Smaller sizes to which its vectors may be cut (Matryoshka representation learning)."""
    any_shorter: bool = False
    """Whether its vectors may be cut to any smaller size."""
    lowercase: bool = False
    """Whether inputs are lowercased before they are tokenised."""
    classes: Classes | None = None
    """Set for a model with a classification head: a vector has the logit of each class."""

    @property
    def max_inputs(self) -> int:
        """Inputs whose vectors fit into one chunk."""
        return max(1, CHUNK_BYTES // (BYTES_PER_NUMBER * self.dimensions))

    def max_pairs(self, max_model_len: int) -> int:
        """Pairs of texts that one job may have, if each takes the model's whole length."""
        return max(1, min(self.max_inputs, _MOST_PAIR_TOKENS // max(1, max_model_len)))

    def allows(self, dimensions: int) -> bool:
        """Whether vectors may be cut to this size."""
        if dimensions == self.dimensions or dimensions in self.shorter:
            return True
        return self.any_shorter and 1 <= dimensions < self.dimensions

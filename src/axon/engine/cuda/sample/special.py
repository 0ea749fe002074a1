"""A draw that needs more than a temperature, and what it needs. Computes nothing."""

from typing import NamedTuple

from axon.engine.batch import Draw
from axon.engine.sample.adjust import is_adjusted
from axon.engine.sample.truncate import is_truncated


class Special(NamedTuple):
    """A draw that needs more than a temperature, and its row."""

    row: int
    draw: Draw
    newest: int = -1
    """Index of the newest output token among the tokens that the step before drew, while its id is unknown; -1 when it
    is known."""

    @property
    def is_adjusted(self) -> bool:
        """Whether the logits are adjusted by more than a mask: that is done in a copy in float32."""
        return is_adjusted(self.draw, but_mask=True)

    @property
    def needs_truncation(self) -> bool:
        """Whether it is drawn from a truncated row."""
        return self.draw.sampling.temperature > 0 and is_truncated(self.draw.sampling)

"""From the last hidden states of an input to its vector, as sentence-transformers pools them. Knows no layers.

Every input is computed by itself, so that its vector is bitwise the same alone and in any batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Pool:
    """Makes one vector of the hidden states [token, hidden] of an input."""

    pooling: str
    """``mean``, ``cls``, ``max`` or ``lasttoken``."""
    normalizes: bool

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        pooled = self._pooled(hidden).float()
        return pooled / pooled.norm().clamp_min(1e-12) if self.normalizes else pooled

    def _pooled(self, hidden: torch.Tensor) -> torch.Tensor:
        match self.pooling:
            case "cls":
                return hidden[0]
            case "max":
                return hidden.amax(0)
            case "lasttoken":
                return hidden[-1]
        return hidden.mean(0)


def vectors_of(hidden: torch.Tensor, spans: Sequence[tuple[int, int]], pool: Pool) -> list[bytes]:
    """The vector of each span of rows, as float32 numbers (little-endian)."""
    rows = torch.stack([pool(hidden[start:stop]) for start, stop in spans]).float()
    return [row.tobytes() for row in rows.cpu().numpy().astype("<f4", copy=False)]

"""How full the slots of a replica are at a given throughput, learned from what is measured. Pure.

Slots fill up slower than throughput: a batch of half the slots serves more than half of a full batch's tokens, because
each step has a fixed cost. With step time = c0 + c1·batch, the odds u/(1-u) of the used slots are those of the used
throughput x/(1-x) times a constant, the odds ratio. It is learned from measured pairs (x, u), so that an error of the
measured throughput is corrected as well: the slots say the truth.
"""

from dataclasses import dataclass
from math import exp, log

_GAIN = 0.02
_LIMIT = log(50.0)
_LEAST, _MOST = 0.1, 0.97
"""Fractions outside of these say little: noise moves their odds too far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """The learned odds ratio of used slots to used throughput."""

    log_ratio: float = 0.0
    """Its logarithm; 0 for slots that fill up as the throughput does, which is safe until something was measured."""
    num: int = 0

    def learn(self, throughput: float, slots: float) -> "Filling":
        """Takes in a look at which fractions of throughput and slots were in use."""
        if not (_LEAST <= throughput <= _MOST and _LEAST <= slots <= _MOST):
            return self
        seen = log(slots / (1 - slots)) - log(throughput / (1 - throughput))
        num = min(10_000, self.num + 1)
        moved = self.log_ratio + max(_GAIN, 1 / (num + 10)) * (seen - self.log_ratio)
        return Filling(log_ratio=min(_LIMIT, max(-_LIMIT, moved)), num=num)

    def throughput(self, slots: float) -> float:
        """The fraction of a replica's throughput that is in use when this fraction of its slots is."""
        held = min(0.99, max(0.01, slots))
        odds = held / (1 - held) / exp(self.log_ratio)
        return odds / (1 + odds)

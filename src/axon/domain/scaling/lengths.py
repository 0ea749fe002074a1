"""Lengths of answers by route and tenant, learned online: how many tokens an answer still has. No I/O, no clock.

For each key a histogram over logarithmic buckets is kept, whose counts decay (exponential forgetting). It predicts the
mean of what is left of an answer that has reached some length (mean residual life): with heavy-tailed lengths, the
longer an answer is, the longer it goes on. Keys are bounded: the one that was used longest ago is forgotten.
"""

from collections import OrderedDict
from collections.abc import Hashable
from math import log2

from axon.domain.scaling.finite import amount, fraction

_PER_OCTAVE = 4
_NUM_BUCKETS = 20 * _PER_OCTAVE
"""Up to a million tokens."""
_MEMORY = 1000.0
"""Answers after which an older one counts half as much or less."""
_PRIOR = 8.0
"""A key's own lengths count fully once it has seen many more answers than this; before, those of all keys help."""


class Lengths:
    """Online estimates of answer lengths in tokens."""

    def __init__(self, *, first_guess: float = 256.0, max_keys: int = 1024) -> None:
        self._first_guess = max(1.0, amount(first_guess, 256.0))
        self._max_keys = max(1, max_keys)
        self._all = _Histogram()
        self._keys: OrderedDict[Hashable, _Histogram] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def observe(self, key: Hashable, tokens: float, weight: float = 1.0) -> None:
        """Takes in the length of an answer that ended; ``weight`` for several of one length."""
        length, weight = amount(tokens), min(_MEMORY, amount(weight))
        self._all.add(length, weight)
        known = self._keys.pop(key, None) or _Histogram()
        known.add(length, weight)
        self._keys[key] = known
        while len(self._keys) > self._max_keys:
            self._keys.popitem(last=False)

    def mean(self, key: Hashable) -> float:
        """The expected length of an answer that has not begun."""
        return self.remaining(key, 0.0)

    def remaining(self, key: Hashable, so_far: float) -> float:
        """The expected rest of an answer that has ``so_far`` tokens and goes on; at least one token."""
        so_far = amount(so_far)
        overall = self._all.remaining(so_far)
        guess = max(1.0, self._first_guess - so_far) if overall is None else overall
        known = self._keys.get(key)
        own = known.remaining(so_far) if known else None
        if known is None or own is None:
            return amount(guess)
        trust = known.total / (known.total + _PRIOR)
        return amount(trust * own + (1 - trust) * guess)

    def quantile(self, key: Hashable, share: float) -> float:
        """The length that this share of the key's answers does not exceed, to a fifth; the first guess without any."""
        known = self._keys.get(key) or self._all
        found = known.quantile(fraction(share) or 0.0)
        return self._first_guess if found is None else found


class _Histogram:
    """Decaying counts and sums of lengths by bucket."""

    __slots__ = ("counts", "sums", "total")

    def __init__(self) -> None:
        self.counts = [0.0] * _NUM_BUCKETS
        self.sums = [0.0] * _NUM_BUCKETS
        self.total = 0.0

    def add(self, length: float, weight: float) -> None:
        if self.total + weight > 2 * _MEMORY:
            self._halve()
        bucket = _bucket(length)
        self.counts[bucket] += weight
        self.sums[bucket] += weight * length
        self.total += weight

    def remaining(self, so_far: float) -> float | None:
        """Mean of what is beyond ``so_far`` over the longer ones; None where none was longer."""
        first = _bucket(so_far) + 1 if so_far > 0 else 0
        num = sum(self.counts[first:])
        if num <= 0:
            return None if self.total <= 0 else max(1.0, 0.25 * so_far)
        return max(1.0, sum(self.sums[first:]) / num - so_far)

    def quantile(self, share: float) -> float | None:
        if self.total <= 0:
            return None
        seen = 0.0
        for count, total in zip(self.counts, self.sums, strict=True):
            seen += count
            if count > 0 and seen >= share * self.total * (1 - 1e-9):
                return total / count
        return None

    def _halve(self) -> None:
        self.counts = [each / 2 for each in self.counts]
        self.sums = [each / 2 for each in self.sums]
        self.total /= 2


def _bucket(length: float) -> int:
    return min(_NUM_BUCKETS - 1, int(log2(length) * _PER_OCTAVE) + 1) if length >= 1 else 0

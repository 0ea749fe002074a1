"""The load of the last minutes as samples of equal spans, bounded in number. Pure; knows no metric."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

from axon.domain.scaling.finite import amount

LONGEST_S = 600.0
_MOST_SAMPLES = 320
_FIRST_DISPERSION = 0.05
_LEAST_DISPERSION, _LARGEST_DISPERSION = 1e-4, 1e3
_GAIN = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Samples of the offered load in busy replicas (Erlang): seconds of work that came per second."""

    samples: tuple[tuple[float, float], ...] = ()
    """(Unix time, load), oldest first."""
    dispersion: float = _FIRST_DISPERSION
    """Variance of a sample over its mean: what independent arrivals and their lengths scatter by."""
    num_samples: int = 0
    """Samples taken in all, up to a bound; the first ones teach the dispersion faster."""

    def sums(self, now: float, ages_s: Sequence[float]) -> list[tuple[float, int]]:
        """Sum and number of the samples that are younger than each age, the ages rising; one pass over all samples."""
        found: list[tuple[float, int]] = []
        total, num, ages = 0.0, 0, iter(ages_s)
        age = next(ages, None)
        for at, load in reversed(self.samples):
            while age is not None and now - at >= age:
                found.append((total, num))
                age = next(ages, None)
            total, num = total + load, num + 1
        return [*found, *[(total, num)] * (len(ages_s) - len(found))]

    def without_largest(self, now: float, age_s: float) -> tuple[float, int]:
        """Sum and number of the samples that are younger than the age, but for the largest one."""
        found: list[float] = []
        for at, load in reversed(self.samples):
            if now - at >= age_s:
                break
            found.append(load)
        return sum(found) - max(found, default=0.0), max(0, len(found) - 1)

    def spread(self, mean: float, num: int, z: float) -> float:
        """``z`` standard errors of a mean of so many samples."""
        return z * sqrt(self.dispersion * max(0.0, mean) / max(1, num))

    def add(self, now: float, load: float) -> "History":
        """The history with one more sample, without those that are too old or later than ``now``."""
        kept = tuple((at, each) for at, each in self.samples if now - LONGEST_S < at < now)[-(_MOST_SAMPLES - 1) :]
        return replace(self, samples=(*kept, (now, amount(load))))

    def learned(self) -> "History":
        """The history after its last sample has changed the dispersion.

        Half the squared difference of neighbours estimates the variance in a way that a trend hardly disturbs. It is a
        step of its own, after the decision: a decision must not see more noise because one sample is high.
        """
        num = min(10_000, self.num_samples + 1)
        if len(self.samples) < 2:
            return replace(self, num_samples=num)
        (_, last), (_, load) = self.samples[-2:]
        if load + last <= 0:
            return replace(self, num_samples=num)
        seen = min((load - last) ** 2 / (load + last), 9 * self.dispersion)
        found = self.dispersion + max(_GAIN, 1 / (num + 4)) * (seen - self.dispersion)
        return replace(self, num_samples=num, dispersion=min(_LARGEST_DISPERSION, max(_LEAST_DISPERSION, found)))

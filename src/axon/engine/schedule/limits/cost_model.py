"""A linear cost model with positive unit costs, learned by exponentiated gradient. Knows no steps, no I/O, no clock.

The model fits y ≈ costs · x to a stream of measurements (x, y). Each measurement multiplies the unit costs by
exponentials of its error (exponentiated gradient, Kivinen and Warmuth, 1997). The error is the logarithm of measured
over predicted, because times scatter by a factor, and the gradient is normalised. So costs stay positive, a
delay moves them by a bounded factor, and an update takes time linear in the number of costs. Errors above and below
may weigh differently: the model then fits an expectile in place of the mean (Newey and Powell, 1987).
"""

from math import exp, log
from operator import mul

Vector = tuple[float, ...]

_LARGEST_ERROR = log(2.0)
"""Once the first measurements are in, one counts as at most twice its prediction: delays lengthen times at random."""


class CostModel:
    """The running estimate of unit costs."""

    def __init__(self, costs: Vector, *, gain_up: float, gain_down: float) -> None:
        self.costs = costs
        """The estimate, all positive; the first measurement sets its unit, so that at first only ratios matter."""
        self.num_updates = 0
        self._gain_up, self._gain_down = gain_up, gain_down

    def predict(self, x: Vector) -> float:
        """The value that the estimate gives for x."""
        product: float = sum(map(mul, self.costs, x))
        return product

    def scale(self, factor: float) -> None:
        """Multiplies all costs by a factor."""
        self.costs = tuple([cost * factor for cost in self.costs])

    def update(self, x: Vector, y: float, *, given: float = 0.0, keeps_ratios: bool = False) -> float:
        """Takes in a measurement y of x beside something of a given cost; returns the factor that x became dearer by.

        The first measurements have the gains 1, 1/2, 1/3 …, down to the lasting ones. ``keeps_ratios``: all costs
        change by the same factor, because nothing in this measurement tells them apart.
        """
        parts: list[float] = list(map(mul, self.costs, x))
        total = sum(parts)
        self.num_updates += 1
        if self.num_updates == 1:
            factor = max((y - given) / total, y / total / 10)
            self.scale(factor)
            return factor
        error = log(y / (given + total))
        gain = self._gain_up if error > 0 else self._gain_down
        if self.num_updates * gain < 1:
            gain = 1 / self.num_updates
        else:
            error = min(error, _LARGEST_ERROR)
        if keeps_ratios:
            self.scale(exp(gain * error))
            return exp(gain * error)
        rate = gain * error * total / sum(map(mul, parts, parts))
        self.costs = tuple([cost * exp(rate * part) for cost, part in zip(self.costs, parts, strict=True)])
        return exp(gain * error)

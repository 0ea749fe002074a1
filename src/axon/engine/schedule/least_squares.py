"""Recursive least squares with directional forgetting. Knows nothing of what is estimated; no I/O, no clock.

The estimator fits y ≈ weights · x to a stream of measurements (x, y). Plain exponential forgetting would inflate the
covariance in directions that no measurement excites; directional forgetting (Kulhavý, 1987) forgets only along x.
Vectors are a few numbers long and updated in every step of an engine: in plain Python that takes half of numpy's time.
"""

from collections.abc import Iterable
from operator import mul

Vector = tuple[float, ...]


class RecursiveLeastSquares:
    """The running estimate of a weight vector."""

    def __init__(self, size: int, *, forgetting_factor: float, first_variance: float) -> None:
        self.weights: Vector = (0.0,) * size
        """The estimate, [size]; the caller may constrain it between updates."""
        self._forgetting_factor = forgetting_factor
        self._covariance = [[first_variance if i == j else 0.0 for j in range(size)] for i in range(size)]
        """Covariance of the estimate, [size, size]: how far one measurement may move it."""

    def predict(self, x: Vector) -> float:
        """The value that the estimate gives for the regressor x."""
        return dot(self.weights, x)

    def update(self, x: Vector, y: float, *, outlier_ratio: float) -> None:
        """Takes in a measurement y for x, which must not be zero.

        Where the prediction's variance is below that of a measurement, y counts as at most ``outlier_ratio`` times the
        prediction.
        """
        predicted = self.predict(x)
        projected = [dot(row, x) for row in self._covariance]
        variance = dot(projected, x)  # of the prediction, in units of the measurement noise
        error = (min(y, outlier_ratio * predicted) if variance < 1 else y) - predicted
        gain = [each / (1 + variance) for each in projected]
        self.weights = tuple(weight + each * error for weight, each in zip(self.weights, gain, strict=True))
        forgetting = self._forgetting_factor - (1 - self._forgetting_factor) / variance
        shrinkage = forgetting / (1 + forgetting * variance)
        self._covariance = [
            [entry - shrinkage * p * q for entry, q in zip(row, projected, strict=True)]
            for row, p in zip(self._covariance, projected, strict=True)
        ]


def dot(a: Iterable[float], b: Iterable[float]) -> float:
    """The scalar product of two vectors."""
    product: float = sum(map(mul, a, b))
    return product

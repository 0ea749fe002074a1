"""What a step of the engine costs: seconds, and more for each stream and each prompt token. No I/O, no clock.

Least squares with exponential forgetting over the steps of the last minute or so: seconds = fixed + streams · per
stream + prompt tokens · per prompt token. From it follows what a full batch serves, also for an engine that has never
been full. Steps that are all alike say too little, and then nothing is told.
"""

from math import isfinite

_FORGETTING = 0.98
"""Part of what was summed up that a later second keeps."""
_LEAST_STEPS = 50.0
_LEAST_DETERMINANT = 1e-5
"""Determinant of the features' correlations below which they cannot be told apart."""

_Row = tuple[float, float, float]


class StepCost:
    """``step`` for every step, ``forget`` once a second, ``speeds`` when asked."""

    def __init__(self) -> None:
        self._squares = [[0.0] * 3 for _ in range(3)]
        self._products = [0.0] * 3

    def step(self, seconds: float, *, streams: int, prompt: int) -> None:
        """Takes in a step that computed so many prompt tokens beside the streams, which got a token each."""
        row = (1.0, float(streams), float(prompt))
        for i, left in enumerate(row):
            self._products[i] += left * seconds
            for j, right in enumerate(row):
                self._squares[i][j] += left * right

    def forget(self) -> None:
        """Lets older steps count less."""
        self._squares = [[_FORGETTING * each for each in row] for row in self._squares]
        self._products = [_FORGETTING * each for each in self._products]

    def speeds(self, slots: int) -> tuple[float | None, float | None]:
        """Prompt tokens per second beside full decoding, and answer tokens per second with every slot taken; None for
        what is not known."""
        if self._squares[0][0] < _LEAST_STEPS or slots <= 0:
            return None, None
        found = _solved(self._squares, self._products) or self._without_prompts()
        if found is None:
            return None, None
        fixed_s, stream_s, prompt_s = found
        full_s = max(0.0, fixed_s) + slots * max(0.0, stream_s)
        return _rate(1.0, prompt_s), _rate(slots, full_s)

    def _without_prompts(self) -> _Row | None:
        """The costs of decoding alone, for steps whose prompts say nothing."""
        (num, streams, _), (_, squares, _), _ = self._squares
        spread = num * squares - streams * streams
        if spread <= _LEAST_DETERMINANT * num * squares:
            return None
        stream_s = (num * self._products[1] - streams * self._products[0]) / spread
        return (self._products[0] - stream_s * streams) / num, stream_s, 0.0


def _rate(number: float, seconds: float) -> float | None:
    return number / seconds if isfinite(seconds) and seconds > 1e-9 * number else None


def _solved(squares: list[list[float]], products: list[float]) -> _Row | None:
    """The solution of the normal equations by Cramer's rule; None where they determine none."""
    whole = _determinant(squares)
    scale = squares[0][0] * squares[1][1] * squares[2][2]
    if scale <= 0 or whole <= _LEAST_DETERMINANT * scale:
        return None
    first, second, third = (
        _determinant([[products[i] if j == k else squares[i][j] for j in range(3)] for i in range(3)]) / whole
        for k in range(3)
    )
    return first, second, third


def _determinant(rows: list[list[float]]) -> float:
    (a, b, c), (d, e, f), (g, h, i) = rows
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)

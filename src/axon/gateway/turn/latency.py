"""Time to the first token and between tokens of one stream, for the metrics. Knows no frame."""

from axon.telemetry.metrics import Metrics


class Latency:
    """One reader's stopwatch. A resumed stream has no first token."""

    def __init__(self, metrics: Metrics, started: float | None) -> None:
        self._metrics = metrics
        self._started = started
        self._last: float | None = None

    def saw(self, num_tokens: int, now: float) -> None:
        """Tokens arrived together at this time."""
        if self._last is not None:
            self._metrics.inter_token_latency.observe((now - self._last) / num_tokens)
        elif self._started is not None:
            self._metrics.time_to_first_token.observe(now - self._started)
        self._last = now

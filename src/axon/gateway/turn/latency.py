"""Time to the first token and between tokens of one stream, for the metrics. Knows no frame."""

from axon.telemetry.metrics import Metrics


class Latency:
    """Measures one reader's stream. ``started`` is None for a resumed stream, which has no first token to wait for."""

    def __init__(self, metrics: Metrics, started: float | None) -> None:
        self._metrics = metrics
        self._started = started
        self._last: float | None = None

    def saw(self, num_tokens: int, now: float) -> None:
        """Observes ``num_tokens`` that arrived together at the time ``now``, in seconds."""
        if self._last is not None:
            self._metrics.inter_token_latency.observe((now - self._last) / num_tokens)
        elif self._started is not None:
            self._metrics.time_to_first_token.observe(now - self._started)
        self._last = now

"""Time to the first token and between tokens of one stream, for the metrics. Knows no frame."""

from axon.domain.job import Job
from axon.telemetry.metrics import Metrics
from axon.telemetry.turn_labels import turn_labels


class Latency:
    """Measures one reader's stream. ``started`` is None for a resumed stream, which has no first token to wait for."""

    def __init__(self, metrics: Metrics, job: Job, started: float | None) -> None:
        labels, turns = turn_labels(job), metrics.turns
        self._first, self._gap = turns.time_to_first_token.labels(*labels), turns.inter_token_latency.labels(*labels)
        self._delivery = metrics.streams.delivery.labels(job.deployment)
        self._started = started
        self._last: float | None = None

    def saw(self, num_tokens: int, now: float, made_at: float = 0.0) -> None:
        """Observes ``num_tokens`` that were written together at the time ``now``, in seconds; ``made_at`` is the time
        at which their worker appended them, 0 if that is not known. A resumed stream begins with tokens that were made
        long ago."""
        if made_at and self._started is not None:
            self._delivery.observe(max(0.0, now - made_at))
        if self._last is not None:
            self._gap.observe((now - self._last) / num_tokens)
        elif self._started is not None:
            self._first.observe(now - self._started)
        self._last = now

"""Counts the log lines of the process by level."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from axon.telemetry.metrics import Metrics


class _Counter(logging.Handler):
    """Counts lines and writes none."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__()
        lines = metrics.process.log_lines
        self._levels = {level: lines.labels(level) for level in ("debug", "info", "warning", "error", "critical")}

    def emit(self, record: logging.LogRecord) -> None:
        if (counter := self._levels.get(record.levelname.lower())) is not None:
            counter.inc()


@contextmanager
def counted_lines(metrics: Metrics) -> Iterator[None]:
    """Counts every line that the process logs inside it."""
    handler = _Counter(metrics)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)

"""Log lines are counted by level while the process runs."""

import logging

from axon.telemetry.log_counts import counted_lines
from axon.telemetry.metrics import Metrics


def test_lines_are_counted_by_level_inside_and_not_outside() -> None:
    metrics = Metrics()
    logger = logging.getLogger("axon.test_log_counts")
    with counted_lines(metrics):
        logger.warning("one")
        logger.error("two")
        logger.error("three")
    logger.error("four")
    counts = {
        level: metrics.registry.get_sample_value("axon_log_lines_total", {"level": level})
        for level in ("warning", "error", "critical")
    }
    assert counts == {"warning": 1, "error": 2, "critical": 0}

"""Metrics of the process itself."""

import platform

from prometheus_client import CollectorRegistry, Info, ProcessCollector

from axon.telemetry.build import version
from axon.telemetry.declared import buckets
from axon.telemetry.declared.declaring import Declarations, Declared


class ProcessMetrics:
    """Event loop, life cycle, log lines and build; and what the system knows of the process."""

    def __init__(self, make: Declarations, registry: CollectorRegistry) -> None:
        make.about("Process")
        self.event_loop_lag = make.histogram(
            "axon_event_loop_lag_seconds", "How late the event loop wakes a sleeper.", buckets.LAG
        )
        self.ready = make.gauge(
            "axon_ready", "1 while the process takes work, as /readyz says.", unit="processes", together="max"
        )
        self.draining = make.gauge(
            "axon_draining",
            "1 while the process finishes its work before it stops, else 0.",
            unit="processes",
            together="max",
        )
        self.log_lines = make.counter(
            "axon_log_lines_total",
            "Log lines by level.",
            "level",
            unit="lines",
            starts=[(level,) for level in ("debug", "info", "warning", "error", "critical")],
        )
        self.trace_spans = make.counter(
            "axon_trace_spans_total",
            "Spans of traces: exported, or lost because the collector did not take them or too many waited.",
            "result",
            unit="spans",
            role="detail",
        )
        sentence = "The running version of Axon and of Python."
        make.note(
            Declared(
                name="axon_build_info",
                kind="info",
                sentence=sentence,
                unit="processes",
                labels=("version", "python"),
                subject="Process",
            )
        )
        Info("axon_build", sentence, registry=registry).info(
            {"version": version(), "python": platform.python_version()}
        )
        ProcessCollector(registry=registry)

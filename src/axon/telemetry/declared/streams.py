"""Metrics of streams and failover."""

from axon.telemetry.declared import buckets
from axon.telemetry.declared.declaring import Declarations

_CAUSES = (("engine_died",), ("worker_lost",))


class StreamMetrics:
    """Answers on their way to readers, and jobs on their way to another worker."""

    def __init__(self, make: Declarations) -> None:
        make.about("Streams and failover")
        self.open = make.gauge("axon_streams_open", "Streams that readers follow.", unit="streams")
        self.delivery = make.histogram(
            "axon_stream_delivery_seconds",
            "From a chunk's append to the log, by its worker's clock, to its frame being written, by the gateway's.",
            buckets.OPERATION,
            "model",
        )
        self.resumes = make.counter(
            "axon_stream_resumes_total", "Streams read again from a seq.", "result", unit="streams", starts=[("ok",)]
        )
        self.failovers = make.counter(
            "axon_failovers_total",
            "Jobs taken over from a lost attempt: engine_died here, worker_lost elsewhere.",
            "cause",
            unit="failovers",
            starts=_CAUSES,
        )
        self.failover = make.histogram(
            "axon_failover_seconds",
            "From the loss of an attempt, as far as known, to the first new token of the next one.",
            buckets.FIRST_TOKEN,
            "cause",
            starts=_CAUSES,
        )
        self.handed_over = make.counter(
            "axon_handed_over_total", "Jobs given up so that another worker goes on.", unit="jobs"
        )
        self.fenced_writes = make.counter(
            "axon_fenced_writes_total", "Appends refused because a later attempt owns the job.", unit="appends"
        )

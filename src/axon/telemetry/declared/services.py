"""Metrics of the services behind the ports: the journal, the store, the queue and live."""

from axon.telemetry.declared import buckets
from axon.telemetry.declared.declaring import Declarations


class ServiceMetrics:
    """Metrics of the data tier, as each process sees it."""

    def __init__(self, make: Declarations) -> None:
        make.about("Data tier")
        self.up = make.gauge(
            "axon_dependency_up",
            "1 while the service's last call succeeded, 0 since one failed: store, live, queue, journal.",
            "dep",
            unit="services",
            together="max",
        )
        self.operation = make.histogram(
            "axon_dependency_op_seconds", "One call of a service.", buckets.OPERATION, *("dep", "op")
        )
        self.errors = make.counter(
            "axon_dependency_errors_total", "Calls of a service that failed.", *("dep", "op"), unit="calls"
        )
        self.wal_pending = make.gauge(
            "axon_wal_pending_records",
            "Records of the journal that are not in the store yet; the persister's control reports them.",
            unit="records",
            together="max",
        )
        self.wal_oldest = make.gauge(
            "axon_wal_oldest_seconds",
            "Time since the persister got the oldest journal record that is not in the store; 0 if there is none.",
            together="max",
        )
        self.wal_bytes = make.gauge(
            "axon_wal_bytes", "Size of the journal's records that are not in the store.", together="max"
        )

"""Metrics of HTTP requests, as gateways see them."""

from axon.telemetry.declared import buckets
from axon.telemetry.declared.declaring import Declarations


class RequestMetrics:
    """Requests that were answered, refused or are open."""

    def __init__(self, make: Declarations) -> None:
        make.about("Requests")
        self.answered = make.counter(
            "axon_requests_total",
            "Requests answered, by route and outcome, which is the HTTP status.",
            *("route", "outcome", "tenant"),
            unit="requests",
        )
        self.duration = make.histogram(
            "axon_request_duration_seconds", "From a request's arrival to its last byte.", buckets.DURATION, "route"
        )
        self.rejected = make.counter(
            "axon_rejected_total",
            "Requests that admission turned away, by the error's code.",
            *("reason", "tenant"),
            unit="requests",
        )
        self.sockets = make.gauge("axon_sockets", "WebSockets that are open.", unit="sockets")

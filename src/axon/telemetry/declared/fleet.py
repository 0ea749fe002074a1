"""Metrics of the fleet: workers, replicas, leaders and the autoscaler."""

from axon.telemetry.declared.declaring import Declarations


class FleetMetrics:
    """Metrics of the workers, as gateways and control see them."""

    def __init__(self, make: Declarations) -> None:
        make.about("Fleet and scaling")
        self._declare_workers(make)
        self._declare_control(make)

    def _declare_workers(self, make: Declarations) -> None:
        self.workers = make.gauge(
            "axon_workers",
            "Workers that this gateway sees, the draining ones not counted.",
            "model",
            unit="workers",
            together="max",
        )
        self.free_slots = make.gauge(
            "axon_free_slots",
            "Sequences that the workers a gateway sees could still take.",
            "model",
            unit="slots",
            together="max",
        )
        self.lease_age = make.gauge(
            "axon_worker_lease_age_seconds",
            "Seconds since the worker last renewed the lease by which others know that it lives.",
            "worker",
            together="max",
        )
        self.info = make.gauge(
            "axon_worker_info",
            "1 for each worker of this process, with what it serves and where.",
            *("model", "version", "worker", "zone", "pool"),
            unit="workers",
            role="detail",
            together="max",
        )

    def _declare_control(self, make: Declarations) -> None:
        self.leads = make.gauge(
            "axon_leads", "1 while this control leads, 0 while it stands by.", unit="leaders", together="max"
        )
        self.launches = make.gauge(
            "axon_launches", "1 while this control launches workers, else 0.", unit="leaders", together="max"
        )
        self.replicas = make.gauge(
            "axon_replicas",
            "Replicas that control's leader wants, and that start, serve and drain.",
            *("group", "state"),
            unit="replicas",
            together="max",
        )
        self.replicas_waiting = make.gauge(
            "axon_replicas_waiting",
            "Launched replicas that ended by themselves and wait to be started again.",
            unit="replicas",
            together="max",
        )
        self.orders = make.counter(
            "axon_fleet_orders_total",
            "Orders of control's leader to its launcher.",
            *("action", "result"),
            unit="orders",
        )
        self.decisions = make.counter(
            "axon_scaling_decisions_total",
            "Decisions of the autoscaler by direction, up, down or hold, and by the signal that decided.",
            *("group", "direction", "reason"),
            unit="decisions",
        )

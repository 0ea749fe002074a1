"""Metrics of the queue: what waits, who takes it, and what nobody can run."""

from axon.telemetry.declared.declaring import WORKER, Declarations


class QueueMetrics:
    """Jobs between gateways and workers."""

    def __init__(self, make: Declarations) -> None:
        make.about("Queue")
        self.backlog_requests = make.gauge(
            "axon_backlog_requests",
            "Accepted turns that no worker has taken, over the whole fleet; the leading control reports them.",
            "model",
            unit="turns",
            together="max",
        )
        self.backlog_tokens = make.gauge(
            "axon_backlog_tokens",
            "Expected tokens of the turns that no worker has taken: prompts, less what caches hold, and answers.",
            "model",
            together="max",
        )
        self.taken = make.counter(
            "axon_taken_total",
            "Jobs taken, by the worker's own lane or a tenant's.",
            "lane",
            unit="jobs",
            starts=[("own",), ("tenant",)],
        )
        self.held = make.gauge(
            "axon_held_jobs",
            "Deliveries that a worker holds and does not run: another may own the job, or nobody can run it yet.",
            *WORKER,
            unit="jobs",
        )
        self.poison = make.counter(
            "axon_poison_jobs_total",
            "Jobs that were failed because they crashed engines repeatedly.",
            *WORKER,
            unit="jobs",
        )
        self.dead_letters = make.counter(
            "axon_dead_letters_total",
            "Records of the journal that cannot be written to the store and were set aside for people.",
            unit="records",
        )

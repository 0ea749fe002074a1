"""Metrics of engines, as the worker beside each reports them."""

from axon.telemetry.declared import buckets
from axon.telemetry.declared.declaring import WORKER, Declarations


class EngineMetrics:
    """Steps, slots, KV blocks and GPUs."""

    def __init__(self, make: Declarations) -> None:
        make.about("Engine")
        self._declare_steps(make)
        self._declare_blocks(make)
        self._declare_shelf(make)
        self._declare_adapters(make)
        self._declare_life(make)
        self._declare_gpus(make)

    def _declare_steps(self, make: Declarations) -> None:
        self.running = make.gauge(
            "axon_requests_running", "Sequences running in the engine.", *WORKER, unit="sequences"
        )
        self.waiting = make.gauge(
            "axon_requests_waiting", "Sequences in the engine without a slot.", *WORKER, unit="sequences"
        )
        self.batch_size = make.gauge(
            "axon_batch_size", "Sequences in the engine's last step.", *WORKER, unit="sequences"
        )
        self.step = make.histogram("axon_step_seconds", "One step of the engine.", buckets.STEP, *WORKER)
        self.step_tokens = make.counter(
            "axon_step_tokens_total", "Tokens that steps have computed, prompts, answers and drafts together.", *WORKER
        )
        self.generated = make.counter(
            "axon_generated_tokens_total", "Tokens of answers that steps have drawn.", *WORKER
        )
        self.slots = make.gauge(
            "axon_slots", "Slots of the engine that are taken, by tier.", *("tier", *WORKER), unit="slots"
        )
        self.slot_limit = make.gauge(
            "axon_slot_limit", "Slots of the engine: the most sequences that run at once.", *WORKER, unit="slots"
        )
        self.drafts = make.counter(
            "axon_draft_tokens_total",
            "Guessed tokens: drafted, and of these accepted; by lookup in the text or grammar, or by the draft model.",
            *("stage", "source", *WORKER),
        )
        self.rank_bytes = make.counter(
            "axon_rank_sent_bytes_total",
            "Bytes sent to the other ranks of a tensor-parallel group.",
            *WORKER,
            role="detail",
        )

    def _declare_blocks(self, make: Declarations) -> None:
        self.kv_blocks = make.gauge(
            "axon_kv_blocks", "KV blocks by state: free, used or cached.", *("state", *WORKER), unit="blocks"
        )
        self.kv_usage = make.gauge(
            "axon_kv_usage_ratio", "Share of the KV blocks in use, 0 to 1.", *WORKER, together="max"
        )
        self.preemptions = make.counter(
            "axon_preemptions_total", "Sequences parked because blocks ran out.", *WORKER, unit="sequences"
        )
        self.yielded = make.counter(
            "axon_yielded_total",
            "Sequences parked because their slot was another's part.",
            *WORKER,
            unit="sequences",
        )
        self.prefix_queries = make.counter(
            "axon_prefix_cache_queries_total",
            "Prompt tokens that were looked up in the prefix cache.",
            *WORKER,
            unit="tokens",
        )
        self.prefix_hits = make.counter(
            "axon_prefix_cache_hits_total",
            "Prompt tokens that the prefix cache had.",
            *WORKER,
            unit="tokens",
        )

    def _declare_adapters(self, make: Declarations) -> None:
        self.adapters = make.counter(
            "axon_adapters_moved_total",
            "LoRA adapters, by way: load (into the engine's memory) or drop (for want of room). Many drops mean that "
            "engine.adapter_slots or engine.adapter_memory_bytes is too small.",
            *("way", *WORKER),
            unit="adapters",
            role="detail",
        )

    def _declare_shelf(self, make: Declarations) -> None:
        self.shelf_bytes = make.gauge(
            "axon_kv_shelf_bytes",
            "Copies of KV blocks outside the device, by place: host (its memory) or file.",
            *("place", *WORKER),
        )
        self.shelf_moved = make.counter(
            "axon_kv_shelf_moved_bytes_total",
            "KV blocks moved, by way: save (device to host), load (host to device), write and read (files).",
            *("way", *WORKER),
        )
        self.shelf_hits = make.counter(
            "axon_kv_shelf_hits_total",
            "Tokens whose KV blocks came from host memory or files instead of being computed.",
            *WORKER,
            unit="tokens",
        )
        self.shelf_damaged = make.counter(
            "axon_kv_shelf_damaged_total",
            "KV blocks that files did not give back as they were written, and that were computed again.",
            *WORKER,
            unit="blocks",
            role="detail",
        )

    def _declare_life(self, make: Declarations) -> None:
        self.up = make.gauge(
            "axon_engine_up", "1 while the worker's engine runs, 0 while it is restarted.", *WORKER, unit="engines"
        )
        self.starts = make.counter(
            "axon_engine_starts_total", "Starts of the worker's engine, the first one included.", *WORKER, unit="starts"
        )
        self.cold_start = make.histogram(
            "axon_cold_start_seconds",
            "From a worker's start until it takes jobs, by stage: load (files, weights and kernels) and whole.",
            buckets.START,
            *("stage", *WORKER),
        )

    def _declare_gpus(self, make: Declarations) -> None:
        self.gpu_utilization = make.gauge(
            "axon_gpu_utilization_ratio",
            "Share of the time in which the GPU ran something, 0 to 1, by NVML.",
            "gpu",
            together="max",
        )
        self.gpu_memory = make.gauge(
            "axon_gpu_memory_bytes", "Memory of the GPU in use, by whomever, by NVML.", "gpu", together="max"
        )

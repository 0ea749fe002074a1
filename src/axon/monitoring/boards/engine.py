"""Engines: what each step does, its slots, its KV blocks, its GPUs."""

from axon.monitoring.dashboard import Dashboard, Row
from axon.monitoring.panel import MODEL, Panel, Query, most, quantile, rate, ratio, total

_STEPS = (
    Panel(
        title="Slots",
        sentence="Sequences in steps, sequences without a slot, and the slots that there are.",
        unit="short",
        queries=(
            Query(expr=total("axon_requests_running", "model", MODEL), legend="{{model}} running"),
            Query(expr=total("axon_requests_waiting", "model", MODEL), legend="{{model}} waiting"),
            Query(expr=total("axon_slot_limit", "model", MODEL), legend="{{model}} slots"),
        ),
    ),
    Panel(
        title="Slots by tier",
        sentence="Slots that are taken, by the service tier of their turns.",
        unit="short",
        queries=(Query(expr=total("axon_slots", "tier", MODEL), legend="{{tier}}"),),
    ),
    Panel(
        title="Batch size",
        sentence="Sequences in the last step of each engine.",
        unit="short",
        queries=(Query(expr=most("axon_batch_size", "worker", MODEL), legend="{{worker}}"),),
    ),
    Panel(
        title="Step time",
        sentence="One step of the engine, by model.",
        unit="s",
        queries=tuple(
            Query(expr=quantile(share, "axon_step_seconds", "model", MODEL), legend=f"{{{{model}}}} {name}")
            for share, name in ((0.5, "p50"), (0.99, "p99"))
        ),
    ),
    Panel(
        title="Tokens a second",
        sentence="Tokens of answers that steps have drawn, and all tokens that they have computed, prompts among them.",
        unit="short",
        queries=(
            Query(expr=rate("axon_generated_tokens_total", "model", MODEL), legend="{{model}} generated"),
            Query(expr=rate("axon_step_tokens_total", "model", MODEL), legend="{{model}} computed"),
        ),
    ),
    Panel(
        title="Guessed tokens",
        sentence="Share of the drafted tokens that the model accepted (speculative decoding), by their source.",
        unit="percentunit",
        queries=(
            Query(
                expr=ratio(
                    rate("axon_draft_tokens_total", "model, source", f'stage="accepted", {MODEL}'),
                    rate("axon_draft_tokens_total", "model, source", f'stage="drafted", {MODEL}'),
                ),
                legend="{{model}} by {{source}}",
            ),
        ),
        needs="drafts",
    ),
)
_BLOCKS = (
    Panel(
        title="KV usage",
        sentence="Share of the KV blocks in use, by worker.",
        unit="percentunit",
        queries=(Query(expr=most("axon_kv_usage_ratio", "model, worker", MODEL), legend="{{model}} {{worker}}"),),
        limit=0.95,
    ),
    Panel(
        title="KV blocks",
        sentence="KV blocks by state: cached ones hold prefixes and are given up when others are needed.",
        unit="short",
        queries=(Query(expr=total("axon_kv_blocks", "state", MODEL), legend="{{state}}"),),
    ),
    Panel(
        title="Prefix cache",
        sentence="Share of the prompt tokens that the prefix cache had.",
        unit="percentunit",
        queries=(
            Query(
                expr=ratio(
                    rate("axon_prefix_cache_hits_total", "model", MODEL),
                    rate("axon_prefix_cache_queries_total", "model", MODEL),
                ),
                legend="{{model}}",
            ),
        ),
    ),
    Panel(
        title="KV blocks outside the device",
        sentence="Copies of KV blocks in host memory and in files, which come back instead of being computed again.",
        unit="bytes",
        queries=(Query(expr=total("axon_kv_shelf_bytes", "place", MODEL), legend="{{place}}"),),
        needs="shelf",
    ),
    Panel(
        title="KV blocks moved",
        sentence="Bytes of KV blocks a second between device, host memory and files.",
        unit="bytes",
        queries=(Query(expr=rate("axon_kv_shelf_moved_bytes_total", "way", MODEL), legend="{{way}}"),),
        needs="shelf",
    ),
    Panel(
        title="Tokens from the shelf",
        sentence="Tokens a second whose KV blocks came from host memory or files.",
        unit="short",
        queries=(Query(expr=rate("axon_kv_shelf_hits_total", "model", MODEL), legend="{{model}}"),),
        needs="shelf",
    ),
    Panel(
        title="Parked sequences",
        sentence="Sequences parked a second: because blocks ran out, or because their slot was another tenant's part.",
        unit="ops",
        queries=(
            Query(expr=rate("axon_preemptions_total", "model", MODEL), legend="{{model}} out of blocks"),
            Query(expr=rate("axon_yielded_total", "model", MODEL), legend="{{model}} yielded"),
        ),
    ),
)
_LIFE = (
    Panel(
        title="Engines that run",
        sentence="1 while a worker's engine runs, 0 while it is restarted.",
        unit="short",
        queries=(Query(expr=most("axon_engine_up", "worker", MODEL), legend="{{worker}}"),),
    ),
    Panel(
        title="Engine starts",
        sentence="Starts of engines a second, the first ones included.",
        unit="ops",
        queries=(Query(expr=rate("axon_engine_starts_total", "model", MODEL), legend="{{model}}"),),
    ),
    Panel(
        title="Cold starts",
        sentence="Mean seconds from a worker's start until it takes jobs, by stage.",
        unit="s",
        queries=(
            Query(
                expr=f"sum by (model, stage) (axon_cold_start_seconds_sum{{{MODEL}}})"
                f" / sum by (model, stage) (axon_cold_start_seconds_count{{{MODEL}}})",
                legend="{{model}} {{stage}}",
            ),
        ),
    ),
)
_GPUS = (
    Panel(
        title="GPU utilisation",
        sentence="Share of the time in which each GPU ran something, by NVML.",
        unit="percentunit",
        queries=(Query(expr=most("axon_gpu_utilization_ratio", "instance, gpu"), legend="{{instance}} {{gpu}}"),),
        needs="gpu",
    ),
    Panel(
        title="GPU memory",
        sentence="Memory of each GPU in use, by whomever, by NVML.",
        unit="bytes",
        queries=(Query(expr=most("axon_gpu_memory_bytes", "instance, gpu"), legend="{{instance}} {{gpu}}"),),
        needs="gpu",
    ),
)

DASHBOARD = Dashboard(
    uid="axon-engine",
    title="Axon: engine",
    sentence="Utilisation, saturation and errors of engines: steps, slots, KV blocks, GPUs.",
    rows=(
        Row(title="Steps", panels=_STEPS),
        Row(title="KV blocks", panels=_BLOCKS),
        Row(title="Starts", panels=_LIFE),
        Row(title="GPUs", panels=_GPUS),
    ),
)

"""Queries of vLLM's public Grafana dashboards, by the names, labels and functions that they use.

Read from examples/observability of github.com/vllm-project/vllm at a014e35f: the dashboard of its Prometheus example,
and those of performance and query statistics. Only names, labels and functions are kept here, in our own form.
"""

MODEL = "echo"

_HISTOGRAMS = (
    "e2e_request_latency_seconds",
    "inter_token_latency_seconds",
    "time_to_first_token_seconds",
)
_RATES = (
    *("prompt_tokens_total", "generation_tokens_total", "iteration_tokens_total_count"),
    *("request_queue_time_seconds_sum", "request_prefill_time_seconds_sum", "request_decode_time_seconds_sum"),
    "request_max_num_generation_tokens_sum",
)
_BUCKETS = ("request_prompt_tokens_bucket", "request_generation_tokens_bucket")
_GAUGES = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
_OF_MODEL = f'{{model_name="{MODEL}"}}'


def queries(window: str) -> list[str]:
    """Every kind of query in the dashboards, over a window such as ``60s``."""
    found = [
        f"histogram_quantile({quantile}, sum by(le) (rate(vllm:{name}_bucket{_OF_MODEL}[{window}])))"
        for name in _HISTOGRAMS
        for quantile in (0.5, 0.9, 0.95, 0.99)
    ]
    found += [
        f"rate(vllm:{name}_sum{_OF_MODEL}[{window}]) / rate(vllm:{name}_count{_OF_MODEL}[{window}])"
        for name in _HISTOGRAMS
    ]
    found += [f"rate(vllm:{name}{_OF_MODEL}[{window}])" for name in _RATES]
    found += [f"sum by(le) (increase(vllm:{name}{_OF_MODEL}[{window}]))" for name in _BUCKETS]
    found += [f"vllm:{name}{_OF_MODEL}" for name in _GAUGES]
    success = f"vllm:request_success_total{_OF_MODEL}[{window}]"
    return [
        *found,
        f"sum by(finished_reason) (increase({success}))",
        f"sum by (model_name) (rate({success}))",
        f"sum(rate(vllm:prompt_tokens_total{_OF_MODEL}[{window}])) / sum(rate({success}))",
        f"histogram_quantile(0.9, sum by(le, model_name) (rate(vllm:request_prompt_tokens_bucket[{window}])))",
    ]


SERIES = sorted(
    {
        *(f"vllm:{name}_{part}" for name in _HISTOGRAMS for part in ("bucket", "sum", "count")),
        *(f"vllm:{name}" for name in (*_RATES, *_BUCKETS, *_GAUGES, "request_success_total")),
    }
)
"""The series that the queries read."""

SCORED = ("vllm:num_requests_waiting", "vllm:num_requests_running", "vllm:kv_cache_usage_perc")
"""What the Gateway API Inference Extension requires of a model server."""

"""vLLM's metrics under its own names, for dashboards, KEDA objects and gateways that were made for it.

Names, labels and buckets are those of vLLM 0.11 and later. They are shown only where the settings ask for them.
"""

from axon.telemetry.declared.declaring import Declarations

_LABELS = ("model_name", "engine")
_FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
_PER_TOKEN = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0),
)
_LATENCY = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
_TOKENS = tuple(float(digit * 10**power) for power in range(6) for digit in (1, 2, 5))
_STEP_TOKENS = tuple(float(each) for each in (1, *(2**power for power in range(3, 15))))
_CHOICES = (1.0, 2.0, 5.0, 10.0, 20.0)


class VllmMetrics:
    """The names that vLLM's public dashboards and the inference gateway's scorers use."""

    def __init__(self, make: Declarations) -> None:
        make.about("vLLM's names")
        self._declare_engine(make)
        self._declare_tokens(make)
        self._declare_latencies(make)

    def _declare_engine(self, make: Declarations) -> None:
        self.running = make.gauge(
            "vllm:num_requests_running",
            "Sequences running in the engine; at a gateway, in those of all workers.",
            *_LABELS,
            unit="sequences",
            role="detail",
            together="max",
        )
        self.waiting = make.gauge(
            "vllm:num_requests_waiting",
            "Turns that wait: in the queue, where this process counts it, and in the engine.",
            *_LABELS,
            unit="sequences",
            role="detail",
            together="max",
        )
        self.kv_usage = make.gauge(
            "vllm:kv_cache_usage_perc",
            "Share of the KV blocks in use; 1 is all of them. At a gateway, the mean of all workers.",
            *_LABELS,
            unit="ratio",
            role="detail",
            together="max",
        )
        self.preemptions = make.counter(
            "vllm:num_preemptions_total",
            "Sequences parked because blocks ran out.",
            *_LABELS,
            unit="sequences",
            role="detail",
        )
        self.prefix_queries = make.counter(
            "vllm:prefix_cache_queries_total",
            "Prompt tokens that were looked up in the prefix cache.",
            *_LABELS,
            unit="tokens",
            role="detail",
        )
        self.prefix_hits = make.counter(
            "vllm:prefix_cache_hits_total",
            "Prompt tokens that the prefix cache had.",
            *_LABELS,
            unit="tokens",
            role="detail",
        )
        self.step_tokens = make.histogram(
            "vllm:iteration_tokens_total",
            "Tokens that one step of the engine computed.",
            _STEP_TOKENS,
            *_LABELS,
            unit="tokens",
            role="detail",
        )

    def _declare_tokens(self, make: Declarations) -> None:
        self.prompt_tokens = make.counter(
            "vllm:prompt_tokens_total", "Prompt tokens of turns that have begun.", *_LABELS, role="detail"
        )
        self.generation_tokens = make.counter(
            "vllm:generation_tokens_total", "Tokens of answers that steps have drawn.", *_LABELS, role="detail"
        )
        self.success = make.counter(
            "vllm:request_success_total",
            "Turns that ended, by the way they did: stop, length, abort or error.",
            *(*_LABELS, "finished_reason"),
            unit="turns",
            role="detail",
        )
        self.request_prompt_tokens = make.histogram(
            "vllm:request_prompt_tokens", "Prompt tokens of a turn.", _TOKENS, *_LABELS, role="detail"
        )
        self.request_generation_tokens = make.histogram(
            "vllm:request_generation_tokens", "Tokens of a turn's answer.", _TOKENS, *_LABELS, role="detail"
        )
        self.request_max_generation_tokens = make.histogram(
            "vllm:request_max_num_generation_tokens",
            "The most tokens that a choice of the turn might have had.",
            _TOKENS,
            *_LABELS,
            role="detail",
        )
        self.request_choices = make.histogram(
            "vllm:request_params_n", "Choices of a turn.", _CHOICES, *_LABELS, unit="choices", role="detail"
        )

    def _declare_latencies(self, make: Declarations) -> None:
        self.first_token = make.histogram(
            "vllm:time_to_first_token_seconds",
            "From a turn's acceptance to its first token.",
            _FIRST_TOKEN,
            *_LABELS,
            role="detail",
        )
        self.inter_token = make.histogram(
            "vllm:inter_token_latency_seconds", "Between two tokens of one choice.", _PER_TOKEN, *_LABELS, role="detail"
        )
        self.per_token = make.histogram(
            "vllm:request_time_per_output_token_seconds",
            "Mean time of a turn's token after the first one.",
            _PER_TOKEN,
            *_LABELS,
            role="detail",
        )
        self.whole = make.histogram(
            "vllm:e2e_request_latency_seconds",
            "From a turn's acceptance to its end.",
            _LATENCY,
            *_LABELS,
            role="detail",
        )
        self.queue = make.histogram(
            "vllm:request_queue_time_seconds",
            "From a turn's acceptance to a worker taking it.",
            _LATENCY,
            *_LABELS,
            role="detail",
        )
        self.inference = make.histogram(
            "vllm:request_inference_time_seconds",
            "From a worker taking a turn to its end.",
            _LATENCY,
            *_LABELS,
            role="detail",
        )
        self.prefill = make.histogram(
            "vllm:request_prefill_time_seconds",
            "From a worker taking a turn to its first token.",
            _LATENCY,
            *_LABELS,
            role="detail",
        )
        self.decode = make.histogram(
            "vllm:request_decode_time_seconds",
            "From a turn's first token to its end.",
            _LATENCY,
            *_LABELS,
            role="detail",
        )

"""The figures that sizing rests on: each with its page, and the words by which a test finds it there. Values only."""

from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    """How far a number can be trusted."""

    MEASURED = "measured"
    COMPUTED = "computed"
    """By a formula from measured figures, or from a model's shape."""
    ASSUMED = "assumed"
    """Nobody has measured it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number, and where it stands."""

    name: str
    value: float
    unit: str
    page: str = ""
    """File of the repository; empty for an assumption."""
    words: str = ""
    """Text of that page which has the number."""

    @property
    def certainty(self) -> Certainty:
        return Certainty.MEASURED if self.page else Certainty.ASSUMED


_SCALE, _PERFORMANCE, _GPU, _BENCHMARKS = "docs/scale.md", "docs/performance.md", "docs/gpu.md", "benchmarks/README.md"

GATEWAY_TOKENS = Figure(
    name="tokens to readers for a second of a gateway's CPU",
    value=24_200,
    unit="tokens/s",
    page=_PERFORMANCE,
    words="24,200 (a gateway alone)",
)
REQUEST_CPU = Figure(
    name="CPU of a request without its tokens",
    value=0.0025,
    unit="s",
    page=_SCALE,
    words="2.5 ms of CPU for a request",
)
SILENT_STREAM_CPU = Figure(
    name="CPU of a stream on which nothing comes",
    value=0.14e-3,
    unit="s each second",
    page=_SCALE,
    words="0.14 ms of CPU a second",
)
STREAM_BYTES = Figure(
    name="memory of a gateway for a silent stream",
    value=11_643,
    unit="bytes",
    page=_BENCHMARKS,
    words="RSS bytes each 11,643",
)
REDIS_TOKEN = Figure(
    name="CPU of Redis for a token",
    value=19e-6,
    unit="s",
    page=_SCALE,
    words="19 µs of CPU for a token, 16 jobs in a call",
)
RABBITMQ_TURNS = Figure(
    name="turns accepted by RabbitMQ",
    value=911,
    unit="turns/s",
    page=_BENCHMARKS,
    words="services: accept, 32 at a time | p50_ms 31.6 · p99_ms 41.5 · turns/s 911",
)
POSTGRESQL_TURNS = Figure(
    name="turns stored by PostgreSQL",
    value=1_574,
    unit="turns/s",
    page=_BENCHMARKS,
    words="stored turns/s 1,574",
)
WORKER_TOKEN = Figure(
    name="CPU of a worker for a token",
    value=41e-6,
    unit="s",
    page=_SCALE,
    words="41 µs of CPU for a token in a loop without pauses",
)
GPU_MEMORY = Figure(
    name="memory of an H200 that weights, KV blocks and the largest step fill",
    value=137e9,
    unit="bytes",
    page=_BENCHMARKS,
    words="`axon_gpu_memory_bytes` 137 GB",
)
GPU_READS = Figure(
    name="KV that attention reads on an H200", value=3.95e12, unit="bytes/s", page=_GPU, words="4.26 at 3.95 TB/s"
)
GPU_HOST_STEP = Figure(
    name="part of a step that no number of ranks makes shorter",
    value=0.3e-3,
    unit="s",
    page=_GPU,
    words="0.3 ms per step for everything else",
)
ALL_REDUCE = Figure(
    name="a small all-reduce over NVLink, as others report it",
    value=12e-6,
    unit="s",
)
MAX_SEQUENCES = Figure(
    name="sequences that a GPU engine runs at once (engine.max_sequences)",
    value=256,
    unit="sequences",
    page=_GPU,
    words="256 and 8,192 by default",
)
CPU_SLOTS = Figure(
    name="streams at once for which the CPU engine was measured",
    value=16,
    unit="streams",
    page=_PERFORMANCE,
    words="| 16 | axon | 247 |",
)
CPU_TOKENS = Figure(
    name="SmolLM2-135M in int8 on two cores of a Neoverse-N1, 16 streams",
    value=247,
    unit="tokens/s",
    page=_PERFORMANCE,
    words="| 16 | axon | 247 |",
)
CPU_FIRST_TOKEN = Figure(
    name="time to the first token of a prompt of 128 words, one stream, SmolLM2-135M on two cores",
    value=0.175,
    unit="s",
    page=_PERFORMANCE,
    words="| 1 | axon | 173 | 175 |",
)
CPU_ENGINE_BYTES = Figure(
    name="memory of an engine with SmolLM2-135M in int8",
    value=440.2e6,
    unit="bytes",
    page=_PERFORMANCE,
    words="440.2 after 2,000",
)

USED = Figure(name="part of an engine's throughput that is planned for", value=0.9, unit="")
SPARE_REPLICAS = Figure(name="replicas above the need, for the loss of one and for rollouts", value=1, unit="replicas")
LEAST = Figure(name="processes of each role at least, so that one may be lost", value=2, unit="processes")
PROCESS_BYTES = Figure(name="memory of a gateway, worker or control process by itself", value=250e6, unit="bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFigures:
    """An engine's throughput with one model on one H200, from benchmarks/README.md."""

    model: str
    one_stream: Figure
    """Tokens per second of a lone stream."""
    many: Figure
    """Tokens per second of 256 requests at once with 512 prompt tokens and 128 of answer."""
    prefill: Figure
    """Prompt tokens per second."""
    kept: Figure
    """Fraction of the engine's throughput that is left behind the whole server."""


def _engine_figure(what: str, value: float, unit: str, words: str, page: str = _BENCHMARKS) -> Figure:
    return Figure(name=what, value=value, unit=unit, page=page, words=words)


H200_8B = EngineFigures(
    model="llama-3-8b",
    one_stream=_engine_figure("8B on an H200, one stream", 259, "tokens/s", "| 1 × (128, 256) | 259 |"),
    many=_engine_figure("8B on an H200, 256 × (512, 128)", 7_484, "tokens/s", "| 256 × (512, 128) | 7,484 |"),
    prefill=_engine_figure("8B on an H200, prompts", 43_930, "tokens/s", "prompt tokens counted | 43,930 |"),
    kept=_engine_figure("part kept behind the server, 8B", 0.97, "", "it keeps 0.97 and 0.99", _GPU),
)
H200_8B_FP8 = EngineFigures(
    model="llama-3-8b",
    one_stream=_engine_figure("8B in fp8 on an H200, one stream", 371, "tokens/s", "| 1 × (128, 256) | 371 (367) |"),
    many=_engine_figure("8B in fp8 on an H200, 256 × (512, 128)", 11_026, "tokens/s", "| 256 × (512, 128) | 11,026 |"),
    prefill=_engine_figure("8B in fp8 on an H200, prompts", 71_188, "tokens/s", "| prefill 32 × 2000 | 71,188 |"),
    kept=H200_8B.kept,
)
"""The server was measured with bfloat16 alone."""
H200_SMALL = EngineFigures(
    model="qwen3-0.6b",
    one_stream=_engine_figure("0.6B on an H200, one stream", 1_362, "tokens/s", "| 205 | 1.26 | 286 | 1,362 |"),
    many=_engine_figure("0.6B on an H200, 256 × (512, 128)", 34_074, "tokens/s", "| 6,752 | 1.11 | – | 34,074 |"),
    prefill=_engine_figure("0.6B on an H200, prompts", 435_771, "tokens/s", "| 1.03 | 52,700 | **435,771** |"),
    kept=_engine_figure("part kept behind the server, 0.6B", 0.78, "", "it keeps 0.78 to 0.94", _GPU),
)

ALL = (
    *(GATEWAY_TOKENS, REQUEST_CPU, SILENT_STREAM_CPU, STREAM_BYTES, REDIS_TOKEN, RABBITMQ_TURNS, POSTGRESQL_TURNS),
    *(WORKER_TOKEN, GPU_MEMORY, GPU_READS, GPU_HOST_STEP, ALL_REDUCE, MAX_SEQUENCES, CPU_SLOTS, CPU_TOKENS),
    *(CPU_FIRST_TOKEN, CPU_ENGINE_BYTES, USED, SPARE_REPLICAS, LEAST, PROCESS_BYTES),
    *(figure for each in (H200_8B, H200_SMALL) for figure in (each.one_stream, each.many, each.prefill, each.kept)),
    *(H200_8B_FP8.one_stream, H200_8B_FP8.many, H200_8B_FP8.prefill),
)
"""Every figure that sizing uses."""

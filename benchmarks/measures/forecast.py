"""What tensor parallelism should give on hardware one does not have: a model of a step, in numbers. Runs nothing.

A step of decodes reads the weights and the KV of its rows once, divided by the ranks, and waits for its sums one after
the other:

    step = (weights + KV) / ranks / bandwidth · 1/efficiency + sums · (latency + bytes / link) + host

What it leaves out: sums that overlap with products, and that a narrower product reads memory less efficiently.
"""

from dataclasses import dataclass

from axon.engine.load.architecture import Architecture
from axon.engine.parallel.partition import Share, padded_part
from axon.engine.parallel.traffic import summed_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device; the defaults are those measured on an H200 with this engine."""

    memory_bytes: float = 141e9
    read_bytes_per_s: float = 3.8e12
    """Weights and KV together, as one stream of an 8B model reads them."""
    flops: float = 640e12
    """bfloat16 products of a long prompt, sustained."""
    step_s: float = 0.3e-3
    """Norms, gates, draws and what the host adds to a step."""


H200 = Gpu()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """What joins the ranks. ``latency_s`` is one small sum's, of which a step has two a layer."""

    name: str
    bytes_per_s: float
    """Of one rank, one way."""
    latency_s: float


NVLINK = Wire(name="NVLink", bytes_per_s=360e9, latency_s=12e-6)
"""Fourth generation: 450 GB/s each way, of which a library reaches about 80%; a sum of a few KB takes 10 to 15 µs."""
EFA = Wire(name="EFA", bytes_per_s=40e9, latency_s=60e-6)
"""3,200 Gbit/s a host of eight GPUs is 50 GB/s each, of which about 80% is reached; 50 to 70 µs for a small sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Of one split."""

    size: int
    weight_bytes: float
    """Of one rank."""
    kv_tokens: int
    """That find room on all ranks together."""
    step_s: float
    sums_s: float
    """Of the step, waiting for the others."""
    tokens_per_s: float
    prefill_tokens_per_s: float


def forecast(
    architecture: Architecture,
    size: int,
    wire: Wire,
    *,
    num_rows: int,
    context: int,
    gpu: Gpu = H200,
    itemsize: int = 2,
) -> Forecast | None:
    """A step of ``num_rows`` decodes with ``context`` tokens behind each; None where it does not find room."""
    weights = weight_bytes(architecture, size, itemsize)
    kv_bytes = kv_bytes_per_token(architecture, size, itemsize)
    room = 0.9 * gpu.memory_bytes - weights
    if room < num_rows * context * kv_bytes:
        return None
    reads = (weights + num_rows * context * kv_bytes) / gpu.read_bytes_per_s
    products = 2 * num_rows * weights / itemsize / gpu.flops
    sums = sums_s(architecture, size, wire, num_rows, itemsize)
    step = max(reads, products) + sums + gpu.step_s
    chunk = 4096
    prefill = 2 * chunk * weights / itemsize / gpu.flops + sums_s(architecture, size, wire, chunk, itemsize)
    return Forecast(
        size=size,
        weight_bytes=weights,
        kv_tokens=int(room / kv_bytes),
        step_s=step,
        sums_s=sums,
        tokens_per_s=num_rows / step,
        prefill_tokens_per_s=chunk / prefill,
    )


def sums_s(architecture: Architecture, size: int, wire: Wire, num_rows: int, itemsize: int) -> float:
    """What a step waits for its sums."""
    if size == 1:
        return 0.0
    each = summed_bytes(num_rows * architecture.hidden_size, itemsize, size)
    return sums_per_step(architecture) * (wire.latency_s + each / wire.bytes_per_s)


def sums_per_step(architecture: Architecture) -> int:
    """All-reduces of a step, however many tokens it has: two a layer, and the embedding's."""
    return 2 * architecture.num_layers + 1


def layer_bytes_per_token(architecture: Architecture, itemsize: int, size: int) -> float:
    """Bytes a rank sends for one token in one layer."""
    return 2 * 2 * (size - 1) / size * architecture.hidden_size * itemsize


def weight_bytes(architecture: Architecture, size: int, itemsize: int) -> int:
    """Of the first rank: what it reads in a step, so the embedding's table is not in it unless it is the head's."""
    local = Share(0, size).of(architecture)
    heads = (local.num_heads + 2 * local.num_kv_heads) * local.head_dim
    layer = local.hidden_size * (heads + local.num_heads * local.head_dim + 3 * local.intermediate_size)
    head = padded_part(local.vocab_size, size) * local.hidden_size
    return (layer * local.num_layers + head) * itemsize


def kv_bytes_per_token(architecture: Architecture, size: int, itemsize: int) -> int:
    """On one rank."""
    local = Share(0, size).of(architecture)
    return 2 * local.num_layers * local.num_kv_heads * local.head_dim * itemsize

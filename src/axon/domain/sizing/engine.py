"""How long an engine's step takes for a model, from measured figures and the model's shape. Pure functions.

A step with ``b`` sequences takes ``fixed_s + b · sequence_s`` seconds, and ``prompt_s`` more for each prompt token.
A measured model's three costs follow from three measured speeds. Another model's follow from those of the measured
model that is nearest in size: weights that are read, and products that are computed, grow with the parameters. A
mixture of experts computes a token with its active parameters alone, but a step of many sequences reads all of them.
"""

import math
from dataclasses import dataclass

from axon.domain.sizing import figure as figures
from axon.domain.sizing.figure import Certainty, EngineFigures, Figure
from axon.domain.sizing.shape import KNOWN, Shape
from axon.errors import InvalidInput

_MEASURED_ROWS, _MEASURED_PROMPT, _MEASURED_ANSWER = 256, 512, 128
_MEASURED_CONTEXT = _MEASURED_PROMPT + _MEASURED_ANSWER // 2
"""Tokens behind a sequence, on the average of the measured load."""
_CPU_PROMPT = 128
"""Prompt tokens of the measured load on a CPU at least: its prompts have 128 words."""
_RANKS = (1, 2, 4, 8)
_FULL = 0.8
"""Part of a rank's memory that weights may take; the rest is for KV blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCost:
    """Costs of one replica's steps, and what it holds."""

    fixed_s: float
    sequence_s: float
    prompt_s: float
    kept: float
    """Part of the throughput that is left behind a server."""
    slots: int
    num_ranks: int
    """Devices of a replica."""
    weight_bytes: float
    """On all ranks together."""
    kv_room: float
    """Bytes for KV blocks, on all ranks together; infinite on a CPU, where host memory is sized by the need."""
    kv_token_bytes: float
    certainty: Certainty
    """How far the costs can be trusted, for contexts up to ``longest_context``."""
    longest_context: float
    """Tokens up to which the costs hold. On a CPU longer contexts were not measured, and add nothing here."""
    sources: tuple[Figure, ...]

    def certainty_at(self, context: float) -> Certainty:
        """How far ``request_s`` can be trusted with so many tokens of context."""
        return self.certainty if context <= self.longest_context else Certainty.ASSUMED

    def request_s(self, prompt: float, answer: float, context: float) -> float:
        """Seconds of one busy replica, with every slot taken, that a request takes."""
        return (prompt * self.prompt_s + answer * self._token_s(context)) / self.kept

    def lone_request_s(self, prompt: float, answer: float, context: float) -> float:
        """Seconds that a request takes at least, alone in a replica: each of its tokens is a step, and no step is
        shorter than its fixed part, or than the part of one sequence."""
        return prompt * self.prompt_s + answer * (max(self.fixed_s, self.sequence_s) + self._reads_s(context))

    def _token_s(self, context: float) -> float:
        return self.fixed_s / self.slots + self.sequence_s + self._reads_s(context)

    def _reads_s(self, context: float) -> float:
        """Seconds more of a token for a longer context than the measured one."""
        if math.isinf(self.kv_room):
            return 0.0
        longer = max(0.0, context - _MEASURED_CONTEXT)
        return longer * self.kv_token_bytes / figures.GPU_READS.value / self.num_ranks


def gpu_cost(shape: Shape, *, fp8: bool = False) -> EngineCost:
    """The costs on H200s, of as many ranks as the weights need; raises ``InvalidInput`` if eight do not hold them,
    or one does not in fp8."""
    measured = figures.H200_8B if shape.num_parameters >= 2_000_000_000 else figures.H200_SMALL
    measured = figures.H200_8B_FP8 if fp8 else measured
    weight_bytes = shape.fp8_weight_bytes() if fp8 else shape.weight_bytes(int8=False)
    base, (fixed_s, sequence_s, prompt_s) = KNOWN[measured.model], _measured(measured)
    larger, busier = (each / base.num_parameters for each in (shape.num_parameters, shape.num_active_parameters))
    num_ranks = _one_rank(shape) if fp8 else _ranks(shape)
    host_s = figures.GPU_HOST_STEP.value
    sums_s = (2 * shape.num_layers + 1) * figures.ALL_REDUCE.value if num_ranks > 1 else 0.0
    is_measured = shape.num_parameters == base.num_parameters and not fp8  # no server was measured in fp8
    sources = [measured.one_stream, measured.many, measured.prefill, measured.kept, figures.GPU_MEMORY]
    if num_ranks > 1:
        sources += [figures.GPU_HOST_STEP, figures.ALL_REDUCE]
    return EngineCost(
        fixed_s=max(0.0, fixed_s - host_s) * larger / num_ranks + host_s + sums_s,
        sequence_s=sequence_s * busier / num_ranks,
        prompt_s=prompt_s * busier / num_ranks,
        kept=measured.kept.value,
        slots=int(figures.MAX_SEQUENCES.value),
        num_ranks=num_ranks,
        weight_bytes=weight_bytes,
        kv_room=num_ranks * figures.GPU_MEMORY.value - weight_bytes,
        kv_token_bytes=shape.kv_bytes(int8=False),
        certainty=_certainty(is_measured=is_measured, num_ranks=num_ranks),
        longest_context=math.inf,  # the time to read a longer one is computed
        sources=tuple(sources),
    )


def cpu_cost(shape: Shape) -> EngineCost:
    """The costs in int8 on two cores of a Neoverse-N1."""
    base = KNOWN["smollm2-135m"]
    busier = shape.num_active_parameters / base.num_parameters
    prompt_s = figures.CPU_FIRST_TOKEN.value / _CPU_PROMPT
    token_s = 1 / figures.CPU_TOKENS.value - prompt_s * _CPU_PROMPT / _MEASURED_ANSWER
    return EngineCost(
        fixed_s=0.0,
        sequence_s=token_s * busier,
        prompt_s=prompt_s * busier,
        kept=1.0,
        slots=int(figures.CPU_SLOTS.value),
        num_ranks=1,
        weight_bytes=shape.weight_bytes(int8=True),
        kv_room=math.inf,
        kv_token_bytes=shape.kv_bytes(int8=True),
        certainty=_certainty(is_measured=shape.num_parameters == base.num_parameters, num_ranks=1),
        longest_context=_CPU_PROMPT + _MEASURED_ANSWER,
        sources=(figures.CPU_TOKENS, figures.CPU_FIRST_TOKEN, figures.CPU_SLOTS),
    )


def _measured(found: EngineFigures) -> tuple[float, float, float]:
    """The three costs of a measured model: of a step, of a sequence in it, of a prompt token."""
    fixed_s, prompt_s = 1 / found.one_stream.value, 1 / found.prefill.value
    whole_s = _MEASURED_ROWS * _MEASURED_ANSWER / found.many.value
    step_s = (whole_s - _MEASURED_ROWS * _MEASURED_PROMPT * prompt_s) / _MEASURED_ANSWER
    return fixed_s, (step_s - fixed_s) / _MEASURED_ROWS, prompt_s


def _ranks(shape: Shape) -> int:
    weights = shape.weight_bytes(int8=False)
    for num in _RANKS:
        divides = shape.num_heads % num == 0 and (shape.num_kv_heads % num == 0 or num % shape.num_kv_heads == 0)
        if divides and weights <= num * _FULL * figures.GPU_MEMORY.value:
            return num
    raise InvalidInput(
        f"{shape.name} has {weights / 1e9:,.0f} GB of weights in bfloat16, which eight H200 do not hold with room for "
        "KV blocks. Larger groups are not sized here; see docs/gpu.md."
    )


def _one_rank(shape: Shape) -> int:
    weights = shape.fp8_weight_bytes()
    if weights > _FULL * figures.GPU_MEMORY.value:
        raise InvalidInput(
            f"{shape.name} has {weights / 1e9:,.0f} GB of weights in fp8, which one H200 does not hold with room for "
            "KV blocks, and fp8 runs on one. Size it in bfloat16: --device h200."
        )
    return 1


def _certainty(*, is_measured: bool, num_ranks: int) -> Certainty:
    if num_ranks > 1:
        return Certainty.ASSUMED
    return Certainty.MEASURED if is_measured else Certainty.COMPUTED

"""The cost model of one replica's engine: how long a step takes. From measurements; computes no token.

A step with ``b`` sequences that decode and ``q`` prompt tokens takes ``fixed_s + b·stream_s + q·prompt_s`` seconds. The
H200's figures are those of docs/gpu.md and benchmarks/results/engine-gpu-2026-11-15.json for the 8B shape: steps of
3.9, 4.2, 5.8 and 12.0 ms at 1, 8, 64 and 256 sequences, and 42,600 prompt tokens per second.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineModel:
    """Costs of a step, and bounds of a batch."""

    fixed_s: float
    stream_s: float
    prompt_s: float
    slots: int
    chunk: int
    """Prompt tokens in one step (chunked prefill)."""

    @property
    def prefill_per_s(self) -> float:
        """Prompt tokens per second that a busy replica computes beside its decoding."""
        return 1 / self.prompt_s

    @property
    def decode_per_s(self) -> float:
        """Answer tokens per second with every slot taken."""
        return self.slots / (self.fixed_s + self.slots * self.stream_s)

    def seconds(self, prompt: float, answer: float) -> float:
        """Seconds of one busy replica that a request takes."""
        return prompt / self.prefill_per_s + answer / self.decode_per_s


H200_8B = EngineModel(fixed_s=0.0039, stream_s=3.16e-5, prompt_s=1 / 42_600, slots=64, chunk=512)
"""Llama-3-8B in bfloat16 on one H200 with 64 slots."""

"""Sampling parameters with the names that vLLM knows, and some of its checks."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class RequestOutputKind(Enum):
    CUMULATIVE = 0
    DELTA = 1


@dataclass
class StructuredOutputsParams:
    grammar: str | None = None


@dataclass(kw_only=True)
class SamplingParams:
    max_tokens: int
    min_tokens: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: dict[int, float] | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    stop_token_ids: list[int] = field(default_factory=list)
    ignore_eos: bool = False
    seed: int | None = None
    detokenize: bool = True
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    structured_outputs: Any = None

    def __post_init__(self) -> None:
        if not -2.0 <= self.presence_penalty <= 2.0:
            raise ValueError(f"presence_penalty must be in [-2, 2], got {self.presence_penalty}.")

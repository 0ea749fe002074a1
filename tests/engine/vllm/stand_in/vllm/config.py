"""Settings of structured outputs by the names that vLLM knows."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class StructuredOutputsConfig:
    backend: str = "auto"

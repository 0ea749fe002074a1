"""Usage of turns in tokens. Knows no price."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one turn; ``cached_tokens`` is the part of the prompt that was not computed again."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    """Tokens of the output that are reasoning."""

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.output_tokens

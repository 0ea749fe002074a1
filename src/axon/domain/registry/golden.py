"""Golden prompts: prompts with known answers for a new version, before a session begins on it. Knows no model."""

from dataclasses import dataclass

from axon.errors import InvalidInput

MAX_CHARS = 10_000
MAX_TOKENS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """One golden prompt. It is asked at temperature 0 and compared as text."""

    prompt: str
    expected: str
    """Text that the answer must contain, in the same case."""
    exactly: bool = False
    """Whether the answer must be ``expected`` and nothing else; spaces at both ends do not count."""
    max_tokens: int = 64
    """Longest answer, in tokens."""

    def check(self) -> None:
        """Raises ``InvalidInput`` for a prompt that cannot be asked, or that every answer would pass."""
        if not 1 <= len(self.prompt) <= MAX_CHARS or not 1 <= len(self.expected) <= MAX_CHARS:
            raise InvalidInput(f"A golden prompt and its answer have 1 to {MAX_CHARS:,} characters.", param="golden")
        if not 1 <= self.max_tokens <= MAX_TOKENS:
            raise InvalidInput(f"'max_tokens' of a golden prompt is from 1 to {MAX_TOKENS:,}.", param="golden")

    def accepts(self, answer: str) -> bool:
        """Whether the answer passes."""
        return answer.strip() == self.expected.strip() if self.exactly else self.expected in answer

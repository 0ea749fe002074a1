"""Golden prompts: prompts with known answers for a new version, before a session begins on it. Knows no model."""

from dataclasses import dataclass


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

    def accepts(self, answer: str) -> bool:
        """Whether the answer passes."""
        return answer.strip() == self.expected.strip() if self.exactly else self.expected in answer

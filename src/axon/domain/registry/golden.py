"""Golden prompts: prompts with known answers for a new version, before a session begins on it. Knows no model."""

from dataclasses import dataclass

from axon.errors import InvalidInput

MOST_CHARACTERS = 10_000
MOST_TOKENS = 4096


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
        """Raises ``InvalidInput`` for a prompt that no version can pass, or that says nothing."""
        for name in ("prompt", "expected"):
            if not 1 <= len(getattr(self, name)) <= MOST_CHARACTERS:
                raise InvalidInput(f"'{name}' of a golden prompt must have 1 to 10,000 characters.", param="golden")
        if not 1 <= self.max_tokens <= MOST_TOKENS:
            raise InvalidInput("'max_tokens' of a golden prompt must be between 1 and 4096.", param="golden")

    def accepts(self, answer: str) -> bool:
        """Whether the answer passes."""
        return answer.strip() == self.expected.strip() if self.exactly else self.expected in answer

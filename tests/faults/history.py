"""What clients asked and were told, turn by turn. Knows no HTTP; written down as JSON lines for people to read."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request whose undisturbed answer is known."""

    name: str
    body: dict[str, Any]
    text: str = ""
    """The undisturbed answer."""


@dataclass(slots=True, kw_only=True)
class Told:
    """One turn as its client saw it. Times are seconds since the workload began."""

    client: int
    ask: str
    asked_at: float
    idempotency_key: str = ""
    stream_id: str = ""
    """Of the accepted turn; empty when none was accepted for it."""
    refusals: list[str] = field(default_factory=list)
    """What the server answered in place of a stream, and how it said to come back."""
    losses: list[str] = field(default_factory=list)
    """How connections ended before the stream did."""
    pieces: list[tuple[int, str]] = field(default_factory=list)
    """Seq and text of each frame with text, over all connections."""
    finishes: list[str] = field(default_factory=list)
    usage: list[int] = field(default_factory=list)
    """Completion tokens, each time they were told."""
    num_done: int = 0
    """How often the stream said that it was over."""
    error: str = ""
    """What went wrong for good."""
    ended_at: float | None = None
    slowest_answer_s: float = 0.0
    """The longest wait for the first byte of an answer."""

    @property
    def seq(self) -> int:
        return self.pieces[-1][0] if self.pieces else 0

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)

    @property
    def running(self) -> bool:
        """Accepted, with tokens, and not over."""
        return bool(self.pieces) and self.ended_at is None


@dataclass(slots=True, kw_only=True)
class History:
    """A workload's turns in the order they were asked."""

    seed: int
    asks: dict[str, Ask]
    turns: list[Told] = field(default_factory=list)

    @property
    def accepted(self) -> list[Told]:
        return [told for told in self.turns if told.stream_id]

    @property
    def running(self) -> list[Told]:
        return [told for told in self.turns if told.running]

    def write(self, path: Path) -> None:
        lines = [{"seed": self.seed}, *map(asdict, self.turns)]
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))

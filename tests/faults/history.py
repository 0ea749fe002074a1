"""What clients asked and were told, turn by turn. Knows no HTTP; written down as JSON lines for people to read."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request whose undisturbed answer is known."""

    name: str
    body: dict[str, Any]
    route: str = "/v1/completions"
    structured: bool = False
    """Whether its answer has a form. If not, each of its tokens is one character, and a seq is a length of text."""
    texts: tuple[str, ...] = ()
    """The undisturbed answer, choice by choice, as a transcript."""

    @property
    def num_choices(self) -> int:
        return int(self.body.get("n", 1))


class Piece(NamedTuple):
    """A frame with text: when it came, the seq of its last token, whose it is."""

    at: float
    seq: int
    choice: int
    text: str


@dataclass(slots=True, kw_only=True)
class Told:
    """One turn as its client saw it. Times are seconds since the workload began."""

    client: int
    ask: str
    asked_at: float
    kind: str = "reader"
    tenant: str = "default"
    idempotency_key: str = ""
    stream_id: str = ""
    """Of the accepted turn; empty when none was accepted for it."""
    refusals: list[str] = field(default_factory=list)
    """What the server answered in place of a stream, and how it said to come back."""
    losses: list[str] = field(default_factory=list)
    """How connections ended before the stream did."""
    pieces: list[Piece] = field(default_factory=list)
    """Over all connections; of a turn that was told from the start again, since then."""
    before: list[Piece] = field(default_factory=list)
    """What it was told until then."""
    finishes: list[str] = field(default_factory=list)
    ends: dict[int, str] = field(default_factory=dict)
    """The finish reason of each choice."""
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
        return self.pieces[-1].seq if self.pieces else 0

    def text(self, choice: int = 0) -> str:
        return "".join(piece.text for piece in self.pieces if piece.choice == choice)

    @property
    def running(self) -> bool:
        """Accepted, with tokens, and not over."""
        return bool(self.pieces) and self.ended_at is None

    @property
    def _news(self) -> Iterator[float]:
        """When it was told a token for the first time."""
        seq = 0
        for piece in (*self.before, *self.pieces):
            if piece.seq > seq:
                seq = piece.seq
                yield piece.at

    def tell_again(self) -> None:
        """It is told everything from the start."""
        self.before += self.pieces
        self.pieces.clear()

    def stall_s(self, since: float) -> float | None:
        """The longest wait for a token past a moment; None for a turn that had none to wait for."""
        late = [since, *(at for at in self._news if at > since)]
        if self.kind == "waiter" or self.asked_at > since or len(late) == 1:
            return None
        return max(after - before for before, after in pairwise(late))


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

    @property
    def num_ended(self) -> int:
        return sum(told.ended_at is not None for told in self.turns)

    def write(self, path: Path) -> None:
        lines = [{"seed": self.seed}, *map(asdict, self.turns)]
        path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))

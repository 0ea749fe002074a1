"""A job in this worker's hands: its tokens from seq 1, the text they make, and what the log has of them.

Knows no engine and no port: pushes tokens in, takes chunks out.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from axon.domain.chunk import Chunk, End, Token
from axon.domain.job import Job
from axon.domain.turn import TurnState
from axon.ports.queue import Delivery
from axon.text.detokenizer import Detokenizer
from axon.text.stops import StopScanner
from axon.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Terminal:
    """How the job ends."""

    state: TurnState
    code: str = ""
    message: str = ""


@dataclass(slots=True, kw_only=True, eq=False)
class Running:
    """One attempt at one job; another attempt at the same job is another one."""

    job: Job
    delivery: Delivery
    epoch: int
    tokenizer: Tokenizer
    tokens: list[Token] = field(default_factory=list)
    ends: tuple[End, ...] = ()
    terminal: Terminal | None = None
    sent: int = 0
    """Seq of the last token that the log is known to have."""
    told: bool = False
    """The log has the terminal chunk: nothing may be said after it."""
    sequence_id: str | None = None
    """Its name in the engine; None while it is not there."""
    _entered_at: int = 0
    _detokenizer: Detokenizer = field(init=False)
    _stops: StopScanner = field(init=False)

    def __post_init__(self) -> None:
        self._detokenizer = Detokenizer(self.tokenizer)
        self._stops = StopScanner(self.job.sampling.stop)

    @property
    def token_ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    @property
    def gained(self) -> int:
        """Tokens since it last came into the engine."""
        return len(self.tokens) - self._entered_at

    def enter(self, sequence_id: str) -> None:
        """Comes into the engine under this name."""
        self.sequence_id, self._entered_at = sequence_id, len(self.tokens)

    def replay(self, chunks: Iterable[Chunk]) -> None:
        """Takes over what earlier attempts have written; text and stop strings go on from there."""
        for chunk in chunks:
            for token in chunk.tokens:
                self._text(token.id, last=False)
                self.tokens.append(token)
        self.sent = len(self.tokens)

    def push(self, token_id: int, finish: str | None) -> bool:
        """One token from the engine; True when it ends the job, be it by a stop string the engine does not know."""
        text, stopped = self._text(token_id, last=finish is not None)
        self.tokens.append(Token(0, token_id, text))
        if stopped or finish is not None:
            self.ends = (End(0, "stop" if stopped else finish or "stop"),)
            self.terminal = Terminal(TurnState.COMPLETED)
        return self.terminal is not None

    def end(self, state: TurnState, code: str = "", message: str = "") -> None:
        """Ends the job from outside; the first end stays."""
        if self.terminal is None:
            self.terminal = Terminal(state, code, message)

    def pending(self) -> Chunk | None:
        """What the log has to be told; None when it has everything."""
        if self.told or (self.sent == len(self.tokens) and self.terminal is None):
            return None
        return self._chunk(first=self.sent + 1)

    def whole(self) -> Chunk:
        """The stream as one chunk."""
        return self._chunk(first=1)

    def _chunk(self, *, first: int) -> Chunk:
        end = self.terminal
        return Chunk(
            first=first,
            epoch=self.epoch,
            tokens=tuple(self.tokens[first - 1 :]),
            ends=self.ends,
            terminal=end.state if end else "",
            code=end.code if end else "",
            message=end.message if end else "",
        )

    def _text(self, token_id: int, *, last: bool) -> tuple[str, bool]:
        piece = self._detokenizer.push(token_id)
        if last:
            piece += self._detokenizer.flush()
        text, stopped = self._stops.push(piece)
        if last and not stopped:
            text += self._stops.flush()
        return text, stopped

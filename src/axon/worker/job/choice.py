"""One of a job's answers: its tokens as the engine gives them, and the text they make. Knows no stream."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from axon.domain.chunk import Details, Likely, ScoredToken, Token
from axon.domain.sampling import Sampling
from axon.engine.protocol.messages import Emitted, Scored
from axon.text.detokenizer import Detokenizer
from axon.text.reasoning import ReasoningSplitter
from axon.text.stops import StopScanner
from axon.text.tokenizer import Tokenizer


@dataclass(slots=True, kw_only=True, eq=False)
class Choice:
    """Goes on until the engine, or a stop string that the engine does not know, ends it."""

    index: int
    sampling: Sampling
    tokenizer: Tokenizer
    token_ids: list[int] = field(default_factory=list)
    waiting: deque[Token] = field(default_factory=deque)
    """Tokens that have no place in the stream yet."""
    reason: str = ""
    """Why it ended; empty while it goes on."""
    sequence_id: str | None = None
    """Its name in the engine; None while it is not there."""
    cached: int = 0
    """Tokens of its prompt that were found computed, until its first token has its place."""
    _num_characters: int = 0
    reasoning: str = ""
    """As in its job."""
    prompt_ids: tuple[int, ...] = ()
    scored: list[ScoredToken] = field(default_factory=list)
    """Of its prompt's tokens, where that is asked for, those that the engine has told of."""
    _detokenizer: Detokenizer = field(init=False)
    _stops: StopScanner = field(init=False)
    _splitter: ReasoningSplitter | None = field(init=False)

    def __post_init__(self) -> None:
        self._splitter = ReasoningSplitter(inside=self.reasoning == "inside") if self.reasoning else None
        self._detokenizer = Detokenizer(self.tokenizer)
        self._stops = StopScanner(self.sampling.stop)

    @property
    def over(self) -> bool:
        """It has ended, and all of it has its place in the stream."""
        return bool(self.reason) and not self.waiting

    @property
    def num_placed(self) -> int:
        """Its tokens in the stream."""
        return len(self.token_ids) - len(self.waiting)

    def replay(self, token: Token) -> None:
        """Takes over a token that an earlier attempt has written; text and stop strings go on from there."""
        self._text(token.id, last=False)
        self._num_characters += len(token.text)
        self.token_ids.append(token.id)

    def push(self, emitted: Emitted) -> None:
        """One token from the engine."""
        if not self.token_ids:
            self.cached = emitted.cached
        text, thinking, stopped = self._text(emitted.token, last=emitted.finish is not None)
        self.waiting.append(Token(self.index, emitted.token, text, self._details(emitted, thinking)))
        self._num_characters += len(text)
        self.token_ids.append(emitted.token)
        if stopped or emitted.finish is not None:
            self.reason = "stop" if stopped else emitted.finish or "stop"

    def score(self, scored: Scored) -> None:
        """What the engine says of the next tokens of the prompt."""
        for logprob, top in scored.logprobs:
            token_id = self.prompt_ids[len(self.scored) + 1]
            self.scored.append(ScoredToken(self.tokenizer.token_bytes(token_id), logprob, self._in_bytes(top)))

    def _text(self, token_id: int, *, last: bool) -> tuple[str, str, bool]:
        """What the token adds to the answer and to the thinking, and whether a stop string ends them."""
        piece = self._detokenizer.push(token_id)
        if last:
            piece += self._detokenizer.flush()
        text, stopped = self._stops.push(piece)
        if last and not stopped:
            text += self._stops.flush()
        if self._splitter is None:
            return text, "", stopped
        answer, thinking = self._splitter.push(text)
        if last or stopped:
            rest, more = self._splitter.flush()
            return answer + rest, thinking + more, stopped
        return answer, thinking, stopped

    def _details(self, emitted: Emitted, thinking: str) -> Details | None:
        if emitted.logprob is None:
            return Details(reasoning=thinking) if thinking else None
        is_first = self.sampling.prompt_logprobs and not self.token_ids
        return Details(
            reasoning=thinking,
            data=self.tokenizer.token_bytes(emitted.token),
            logprob=emitted.logprob,
            top=self._in_bytes(emitted.top),
            offset=self._num_characters,
            prompt=(ScoredToken(self.tokenizer.token_bytes(self.prompt_ids[0]), None), *self.scored)
            if is_first
            else (),
        )

    def _in_bytes(self, top: Iterable[tuple[int, float]]) -> tuple[Likely, ...]:
        return tuple(Likely(self.tokenizer.token_bytes(token_id), logprob) for token_id, logprob in top)

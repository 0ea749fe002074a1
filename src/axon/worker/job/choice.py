"""One choice of a job: its tokens in the engine's order, and the text they make. Knows no stream."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from axon.domain.content.tool_call import TOOL_CALLS, CallPiece
from axon.domain.log.chunk import Details, Likely, Ranked, ScoredToken, Token
from axon.domain.sampling import Sampling
from axon.engine.protocol.messages import Emitted, Scored
from axon.text.detokenizer import Detokenizer
from axon.text.harmony import HARMONY, HarmonyReader
from axon.text.reasoning import ReasoningSplitter
from axon.text.stops import StopScanner
from axon.text.tokenizer import Tokenizer
from axon.text.tools.formats import CallSplitter


@dataclass(slots=True, kw_only=True, eq=False)
class Choice:
    """Runs until the engine ends it, or a stop string, which the engine does not know."""

    index: int
    sampling: Sampling
    tokenizer: Tokenizer
    token_ids: list[int] = field(default_factory=list)
    waiting: deque[Token] = field(default_factory=deque)
    """Tokens that are not in the job's stream yet, because another choice's token comes first."""
    reason: str = ""
    """The finish reason; empty while the choice runs."""
    sequence_id: str | None = None
    """The id of its sequence in the engine; None while it is not there."""
    cached: int = 0
    """Prompt tokens found in the KV cache; reset when the job has counted them."""
    _num_characters: int = 0
    reasoning: str = ""
    """The job's reasoning mode."""
    calls: CallSplitter | None = None
    """Separates tool calls from the text, where the request offers tools."""
    prompt_ids: tuple[int, ...] = ()
    second_start: int = 0
    """Index in the prompt at which the second text of a pair begins; 0 for a single text."""
    scored: list[ScoredToken] = field(default_factory=list)
    """The prompt's tokens with their logprobs, as far as the engine has computed them, where they are asked for."""
    ranked: list[Ranked] = field(default_factory=list)
    """The ranks of the same tokens."""
    _detokenizer: Detokenizer = field(init=False)
    _stops: StopScanner = field(init=False)
    _splitter: ReasoningSplitter | None = field(init=False)
    _harmony: HarmonyReader | None = field(init=False)

    def __post_init__(self) -> None:
        is_harmony = self.reasoning == HARMONY
        self._harmony = HarmonyReader(self.tokenizer) if is_harmony else None
        has_tags = bool(self.reasoning) and not is_harmony
        self._splitter = ReasoningSplitter(inside=self.reasoning == "inside") if has_tags else None
        self._detokenizer = Detokenizer(self.tokenizer)
        self._stops = StopScanner(self.sampling.stop)

    @property
    def over(self) -> bool:
        """Whether the choice has ended, and all its tokens are in the stream."""
        return bool(self.reason) and not self.waiting

    @property
    def num_placed(self) -> int:
        """The number of its tokens in the stream."""
        return len(self.token_ids) - len(self.waiting)

    def replay(self, token: Token) -> None:
        """Feeds a token of an earlier attempt to the detokenizer and what reads its text, which go on from there."""
        self._read(token.id, last=False)
        self._num_characters += len(token.text)
        self.token_ids.append(token.id)

    def push(self, emitted: Emitted) -> None:
        """Adds one token from the engine."""
        if not self.token_ids:
            self.cached = emitted.cached
        last, cut_off = emitted.finish is not None, emitted.finish == "length"
        text, thinking, calls, stopped = self._read(emitted.token, last=last, cut_off=cut_off)
        self.waiting.append(Token(self.index, emitted.token, text, self._details(emitted, thinking, calls)))
        self._num_characters += len(text)
        self.token_ids.append(emitted.token)
        if stopped or emitted.finish is not None:
            self.reason = "stop" if stopped else emitted.finish or "stop"
            is_cut = self.calls is not None and self.calls.is_within_call and bool(self._stops.matched)
            if self.reason == "stop" and self.calls is not None and self.calls.has_calls and not is_cut:
                self.reason = TOOL_CALLS

    def score(self, scored: Scored) -> None:
        """Adds the logprobs of the next tokens of the prompt."""
        for logprob, rank, top in scored.logprobs:
            token_id = self.prompt_ids[len(self.scored) + 1]
            self.scored.append(ScoredToken(self.tokenizer.token_bytes(token_id), logprob, self._in_bytes(top)))
            self.ranked.append(Ranked(rank, tuple(id for id, _ in top)))

    def forget_scores(self) -> None:
        """Drops the logprobs of the prompt: it enters an engine anew, which computes them again."""
        self.scored.clear()
        self.ranked.clear()

    def _read(
        self, token_id: int, *, last: bool, cut_off: bool = False
    ) -> tuple[str, str, tuple[CallPiece, ...], bool]:
        """Detokenizes one token: its answer text, its reasoning text, its pieces of calls, and whether it ends the
        choice, by a stop string or as the end of the last call that the choice may have.

        ``cut_off``: it is the last token because the choice may have no more.
        """
        text, thinking, stopped = self._text(token_id, last=last)
        if self.calls is None:
            return text, thinking, (), stopped
        said = self.calls.push(text)
        if self.calls.is_done or not (last or stopped):
            return said.text, thinking, said.calls, stopped or self.calls.is_done
        rest = self.calls.flush(cut_off=cut_off and not stopped)
        return said.text + rest.text, thinking, (*said.calls, *rest.calls), stopped

    def _text(self, token_id: int, *, last: bool) -> tuple[str, str, bool]:
        """Detokenizes one token: its answer text, its reasoning text, and whether a stop string was reached."""
        piece = self._detokenizer.push(token_id)
        if self.calls is not None:
            piece += self.calls.mark(token_id)
        if last:
            piece += self._detokenizer.flush()
        if self._harmony is not None:
            return self._message_text(self._harmony, token_id, piece, last=last)
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

    def _message_text(self, harmony: HarmonyReader, token_id: int, piece: str, *, last: bool) -> tuple[str, str, bool]:
        """Returns the same as ``_text`` for an answer in the harmony format: stop strings are looked for within each
        body."""
        piece, is_thinking = harmony.push(piece), harmony.is_thinking
        is_mark = harmony.see(token_id)
        text, stopped = self._stops.push(piece + harmony.flush() if last else piece)
        if (last or is_mark) and not stopped:
            text += self._stops.flush()
        call = self.calls.opening(harmony.function) if is_mark and harmony.function and self.calls is not None else ""
        return (call, text, stopped) if is_thinking else (text + call, "", stopped)

    def _details(self, emitted: Emitted, thinking: str, calls: tuple[CallPiece, ...]) -> Details | None:
        stop, tells_prompt = self._stops.matched, self.sampling.prompt_logprobs and not self.token_ids
        prompt = self._scored_prompt() if tells_prompt else ()
        ranks = tuple(self.ranked) if tells_prompt and self.sampling.prompt_top is not None else ()
        if emitted.logprob is None:
            has_any = thinking or calls or stop or prompt
            return Details(reasoning=thinking, calls=calls, stop=stop, prompt=prompt, ranks=ranks) if has_any else None
        return Details(
            reasoning=thinking,
            stop=stop,
            data=self.tokenizer.token_bytes(emitted.token),
            logprob=emitted.logprob,
            top=self._in_bytes(emitted.top),
            offset=self._num_characters,
            prompt=prompt,
            ranks=ranks,
            calls=calls,
        )

    def _scored_prompt(self) -> tuple[ScoredToken, ...]:
        return ScoredToken(self.tokenizer.token_bytes(self.prompt_ids[0]), None), *self.scored

    def _in_bytes(self, top: Iterable[tuple[int, float]]) -> tuple[Likely, ...]:
        return tuple(Likely(self.tokenizer.token_bytes(token_id), logprob) for token_id, logprob in top)

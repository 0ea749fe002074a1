"""One attempt at a job: its tokens from seq 1, the text they make, and how much of them the log has.

Knows no engine and no port: tokens are pushed in, chunks are taken out. The choices of a job advance independently of
each other; the stream orders their tokens by (position, choice), so that it is the same whoever computed it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from axon.domain.billing.ledger import Ledger
from axon.domain.job import Job
from axon.domain.log.chunk import Chunk, End, Token
from axon.domain.turn import TurnState
from axon.engine.protocol.messages import Emitted
from axon.ports.queue import Delivery
from axon.runtime.clock import Clock, SystemClock
from axon.text.tokenizer import Tokenizer
from axon.text.tools.formats import CallFormat, CallSplitter, marks_of
from axon.worker.job.choice import Choice
from axon.worker.job.tally import Tally


@dataclass(frozen=True, slots=True)
class Terminal:
    """The end of a job: its state, and for a failure its code and message."""

    state: TurnState
    code: str = ""
    message: str = ""


@dataclass(slots=True, kw_only=True, eq=False)
class Running:
    """One attempt at one job, compared by identity: a later attempt at the same job is another ``Running``."""

    job: Job
    delivery: Delivery
    epoch: int
    crashes: int = 0
    """Engines that had died with the job in their step when it was claimed."""
    tokenizer: Tokenizer
    clock: Clock = field(default_factory=SystemClock)
    tokens: list[Token] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    terminal: Terminal | None = None
    cached: int = 0
    """Prompt tokens that were in the engine's KV cache, counted once per prompt, when the prompt's first choice has a
    token in the stream."""
    vectors: dict[int, bytes] = field(default_factory=dict)
    """The vectors of an embedding job so far, by choice; they are appended with its end, all at once."""
    reasoned: int = 0
    """Tokens in the stream that are reasoning."""
    sent: int = 0
    """Seq of the last token that the log is known to have."""
    end_logged: bool = False
    """The log has the terminal chunk: nothing may be appended after it."""
    is_leaving: bool = False
    """The job is about to be handed over: it stays out of this worker's engine."""
    gained: int = 0
    """Tokens that the engine has emitted since the job last entered it."""
    limit: int | None = None
    """Last seq that may be appended, None for any; later tokens are held back until the tenant's bucket refills."""
    answered_at: float = float("-inf")
    """Monotonic time at which the log last took an append; its answer says whether the job was cancelled."""
    must_ask: bool = False
    """An append is due even without a token, because its answer says whether the job was cancelled."""
    lost: tuple[str, float] | None = None
    """The way in which the attempt before this one was lost, and the monotonic time since which that is known; None
    once this attempt has a token."""
    is_paused: bool = False
    """The job is out of the engine because enough of its tokens are held back."""
    awaits_files: bool = False
    """The job cannot enter the engine before the files of its LoRA adapter are here."""
    choices: list[Choice] = field(init=False)
    tally: Tally = field(init=False)
    _num_taken: int = 0
    """Tokens in the stream that earlier attempts computed."""
    _ledger: Ledger | None = None
    """The ledger at the job's end, once it was made."""

    def __post_init__(self) -> None:
        self.tally = Tally(self.job, self.clock)
        self.choices = [
            Choice(
                index=index,
                sampling=self.job.sampling,
                tokenizer=self.tokenizer,
                reasoning=self.job.reasoning,
                prompt_ids=self.job.prompt_of(index),
                second_start=self.job.second_start_of(index),
                calls=self._splitter(),
            )
            for index in range(self.job.choices)
        ]

    def _splitter(self) -> CallSplitter | None:
        job = self.job
        if not job.call_format:
            return None
        marks = marks_of(CallFormat(job.call_format), self.tokenizer)
        return CallSplitter(
            job.call_format,
            marks,
            max_calls=job.max_calls,
            text_parameters=job.text_parameters,
            formed=job.formed,
        )

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1 on."""
        return self.tally.attempt

    @property
    def absent(self) -> list[Choice]:
        """The choices that are to run and are not in the engine."""
        if self.terminal is not None or self.is_leaving or self.is_paused:
            return []
        return [choice for choice in self.choices if not choice.reason and choice.sequence_id is None]

    @property
    def is_midstream(self) -> bool:
        """Whether a token of this attempt is in the log and the next ones may wait: there is no end, none is held
        back, and no question to the log is due."""
        return self.sent > self._num_taken and self.terminal is None and not (self.is_held_back or self.must_ask)

    @property
    def is_interrupted(self) -> bool:
        """Whether earlier attempts have computed tokens, and this one none yet: its reader waits in the middle."""
        return 0 < self._num_taken == len(self.tokens)

    @property
    def num_released(self) -> int:
        """The number of tokens that may be appended to the log."""
        return len(self.tokens) if self.limit is None else min(len(self.tokens), max(self.limit, self.sent))

    @property
    def is_held_back(self) -> bool:
        """Whether tokens are held back: then the job has not ended for its reader, even if the engine has ended it."""
        return self.num_released < len(self.tokens)

    @property
    def is_idle(self) -> bool:
        """Whether the job needs no slot in the engine now, although its end is not in the log."""
        if self.limit is None:  # as of most jobs, and asked of every job each time that one is taken
            return self.is_paused or self.awaits_files
        return self.is_paused or self.awaits_files or (self.is_held_back and self.terminal is not None)

    def enter(self, choice: Choice, sequence_id: str) -> None:
        """A choice enters the engine under this sequence id."""
        choice.sequence_id, self.gained = sequence_id, 0
        choice.forget_scores()
        self.tally.enter(choice.index, len(choice.token_ids))

    def logged(self) -> Chunk:
        """The tokens that the log is known to have, as one chunk."""
        return replace(self.whole(), terminal="", code="", message="").until(self.sent)

    def replay(self, chunks: Iterable[Chunk], *, attempted: bool = False) -> None:
        """Takes over the stream of earlier attempts; ``attempted``: there was one, even if it wrote nothing."""
        chunks = list(chunks)
        for chunk in chunks:
            self.cached = max(self.cached, chunk.cached)
            self.reasoned = max(self.reasoned, chunk.reasoned)
            for token in chunk.tokens:
                self.choices[token.choice].replay(token)
            for end in chunk.ends:
                self.choices[end.choice].reason = end.reason
            self.tokens += chunk.tokens
            self.ends += chunk.ends
        self.sent = self._num_taken = len(self.tokens)
        if attempted or self.tokens:
            ledgers = [chunk.ledger for chunk in chunks if chunk.ledger is not None]
            epochs = {chunk.epoch for chunk in chunks if chunk.epoch}
            attempts = max(1, len(epochs), ledgers[-1].attempts if ledgers else 0)
            begun = {token.choice for token in self.tokens}
            self.tally.resume(ledgers[-1] if ledgers else None, attempts=attempts, begun=begun)

    def take_over(self, lost: "Running") -> None:
        """Continues the tally of an attempt that was made here; its tokens beyond the log's end are computed again."""
        num_lost = sum(len(choice.token_ids) for choice in lost.choices) - len(self.tokens)
        self.tally.take_over(lost.tally, num_lost=max(0, num_lost))

    def push(self, choice: Choice, emitted: Emitted) -> bool:
        """Adds one token from the engine; True when the token ends its choice."""
        self.tally.emit(choice.index, emitted.cached)
        choice.push(emitted)
        self.gained += 1
        self._merge()
        if self._next() is None and self.terminal is None:
            self.terminal = Terminal(TurnState.COMPLETED)
        return bool(choice.reason)

    def embed(self, choice: Choice, vector: bytes) -> None:
        """Adds the vector of one input from the engine, with which its choice has ended."""
        self.tally.emit(choice.index, 0)
        choice.reason, self.vectors[choice.index] = "stop", vector
        self.gained += 1
        if len(self.vectors) == len(self.choices) and self.terminal is None:
            self.terminal = Terminal(TurnState.COMPLETED)

    def end(self, state: TurnState, code: str = "", message: str = "") -> None:
        """Ends the job from outside, unless it has an end already; tokens that are held back are dropped."""
        if self.terminal is None or self.is_held_back:
            self._keep(self.num_released)
            self.terminal = Terminal(state, code, message)
            self._drop_waiting()

    def cancel(self) -> None:
        """Ends the job with what the log has of it, in place of an end that the log does not have yet."""
        self._keep(self.sent)
        self.terminal, self._ledger = Terminal(TurnState.CANCELLED), None
        self._drop_waiting()

    def stop(self, code: str, message: str) -> None:
        """Ends the job as completed: each choice that still runs ends with the reason ``length``."""
        if self.terminal is not None and not self.is_held_back:
            return
        self.end(TurnState.COMPLETED, code, message)
        over = {end.choice for end in self.ends}
        for choice in self.choices:
            if choice.index not in over:
                choice.reason = "length"
                self.ends.append(End(choice.index, "length", len(self.tokens)))

    def pending(self) -> Chunk | None:
        """The chunk to append next; None when the log has everything that it may have."""
        if self.is_held_back:
            return self._released_chunk() if self.sent < self.num_released or self.must_ask else None
        has_news = self.sent < len(self.tokens) or self.terminal is not None
        if self.end_logged or not (has_news or self.must_ask):
            return None
        return self._chunk(first=self.sent + 1)

    def whole(self) -> Chunk:
        """The stream as one chunk."""
        return self._chunk(first=1)

    def _released_chunk(self) -> Chunk:
        """The tokens that may be appended and are not in the log, without an end that is held back."""
        reasoned = self.reasoned - _num_thoughts(self.tokens[self.num_released :])
        whole = replace(self._chunk(first=self.sent + 1), terminal="", code="", message="", reasoned=reasoned)
        return whole.until(self.num_released)

    def _keep(self, seq: int) -> None:
        """Drops every token past ``seq`` and counts it as wasted."""
        self.tally.waste(len(self.tokens[seq:]))
        self.reasoned -= _num_thoughts(self.tokens[seq:])
        del self.tokens[seq:]
        self.ends = [end for end in self.ends if end.at is None or end.at <= seq]

    def _drop_waiting(self) -> None:
        self.tally.waste(sum(len(choice.waiting) for choice in self.choices))
        for choice in self.choices:
            choice.waiting.clear()

    def _merge(self) -> None:
        """Moves tokens from the choices to the stream while the next one in stream order is there."""
        while (choice := self._next()) is not None and choice.waiting:
            self.tokens.append(token := choice.waiting.popleft())
            self.reasoned += bool(token.reasoning)
            if choice.cached:
                self._count_cached(choice)
            if choice.over:
                self.ends.append(End(choice.index, choice.reason, len(self.tokens)))

    def _count_cached(self, choice: Choice) -> None:
        """Counts a prompt's cached tokens with its first choice; the sum is capped, because a replay counts again."""
        if choice.index % self.job.choices_each == 0:
            self.cached = min(self.cached + choice.cached, self.job.num_prompt_tokens)
        choice.cached = 0

    def _next(self) -> Choice | None:
        """The choice whose token comes next in the stream; None when all choices are in it to their end."""
        if len(self.choices) == 1:  # as in most jobs, and asked for every token
            return None if self.choices[0].over else self.choices[0]
        going_on = [choice for choice in self.choices if not choice.over]
        return min(going_on, key=lambda choice: choice.num_placed, default=None)

    def _chunk(self, *, first: int) -> Chunk:
        end = self.terminal
        ends = self.ends if end else [each for each in self.ends if each.at is None or each.at >= first]
        return Chunk(
            first=first,
            epoch=self.epoch,
            tokens=tuple(self.tokens[first - 1 :]),
            ends=tuple(ends),
            terminal=end.state if end else "",
            code=end.code if end else "",
            message=end.message if end else "",
            cached=self.cached,
            reasoned=self.reasoned,
            ledger=self._ledger_for(first),
            vectors=self._vectors(),
            at=self.clock.now(),
        )

    def _vectors(self) -> tuple[bytes, ...]:
        """The vectors in the order of the inputs, if the job is complete."""
        is_whole = self.terminal is not None and self.terminal.state is TurnState.COMPLETED
        return tuple(self.vectors[index] for index in sorted(self.vectors)) if is_whole else ()

    def _ledger_for(self, first: int) -> Ledger | None:
        """The ledger in a chunk that begins at ``first``: only an attempt's first chunk and the end carry one."""
        if self.terminal is not None and not self.is_held_back:
            # Made once: the log and the store must have the same figures.
            if self._ledger is None or self._ledger.emitted != len(self.tokens):
                self._ledger = self.tally.closed(len(self.tokens))
            return self._ledger
        return self.tally.so_far(self.num_released) if first in (1, self._num_taken + 1) else None


def _num_thoughts(tokens: Iterable[Token]) -> int:
    return sum(bool(token.reasoning) for token in tokens)

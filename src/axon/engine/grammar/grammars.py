"""Compiles the grammars of new sequences in a thread, while others run. Knows no scheduler and no model."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from axon.domain.failure import Failure
from axon.domain.grammar import ParserLimits, limits_of
from axon.engine.constraint import Masks, Matcher
from axon.engine.grammar.compiled import CompiledCache
from axon.engine.grammar.filling import Filler, num_threads
from axon.engine.grammar.matcher import GrammarMatcher, said
from axon.engine.grammar.prototypes import Prototypes
from axon.engine.grammar.vocabulary import Vocabulary
from axon.engine.protocol.messages import Add, Refused
from axon.errors import Misconfigured

if TYPE_CHECKING:
    from llguidance import LLMatcher

MAX_TEXT_BYTES = 1 << 20
"""Longest text of a grammar."""
_MAX_ENTRIES, _MAX_CACHE_BYTES = 128, 8 << 20
_MAX_SHARED_CHARS = 16 << 10
"""A grammar with a longer text is compiled once, however many threads there are."""
_TIMEOUT_S = 5.0
"""A sequence is refused whose grammar takes longer to compile; another thread then compiles those behind it."""
_MAX_LOST = 4
"""Threads that may compile on after that; with more, grammars wait for one of them."""
_WAIT_S = 0.05
"""Longest wait for a grammar when nothing else is to do."""
_STACK_BYTES = 64 << 20
"""Stack of the thread that compiles: a parser of nested text may call itself once for each level."""


@dataclass(slots=True)
class _Pending:
    """A sequence whose grammar is being compiled."""

    add: Add
    matcher: "Future[GrammarMatcher]"
    begun_at: float | None = None
    """When it was first seen to be compiled; None while it waits for others."""

    @property
    def is_late(self) -> bool:
        return self.begun_at is not None and time.monotonic() > self.begun_at + _TIMEOUT_S


class Unusable(Exception):
    """A grammar that cannot be used; the message says why."""


class Grammars:
    """Takes in sequences that have a grammar, and gives them back with a matcher."""

    def __init__(self, open_vocabulary: Callable[[], Vocabulary], *, limits: ParserLimits | None = None) -> None:
        """Begins to read the vocabulary: ``open_vocabulary`` is called now, in the compiling thread."""
        self._limits = limits
        self.cache: CompiledCache[Prototypes] = CompiledCache(max_entries=_MAX_ENTRIES, max_bytes=_MAX_CACHE_BYTES)
        self._pending: dict[str, _Pending] = {}
        self._thread: ThreadPoolExecutor | None = None
        self._lost: list[Future[GrammarMatcher]] = []
        self._filler = Filler()
        self._vocabulary = self._pool().submit(open_vocabulary)

    @property
    def pending_ids(self) -> list[str]:
        """The sequences whose grammars are not compiled yet."""
        return list(self._pending)

    def submit(self, add: Add) -> None:
        """Takes in a sequence; ``take`` gives it back."""
        self._pending[add.id] = _Pending(add, self._pool().submit(self._make, add))

    def drop(self, ids: Iterable[str]) -> None:
        """Forgets sequences; unknown ids are ignored."""
        for id in ids:
            if pending := self._pending.pop(id, None):
                pending.matcher.cancel()

    def take(self, *, may_wait: bool) -> list[tuple[Add, Matcher | Refused]]:
        """The sequences whose grammars are compiled by now, each with its matcher or its refusal."""
        if not self._pending:
            return []
        if may_wait:
            wait([each.matcher for each in self._pending.values()], _WAIT_S, FIRST_COMPLETED)
        self._note_running()
        done = [each for each in self._pending.values() if each.matcher.done() or each.is_late]
        taken: list[tuple[Add, Matcher | Refused]] = [(each.add, _outcome(each)) for each in done]
        self.drop(each.add.id for each in done)
        self._replace_thread([each.matcher for each in done if not each.matcher.done()])
        return taken

    def begin(self, masks: Sequence[Masks]) -> None:
        """Begins to fill the masks of a step; whoever asks for one of them waits for it."""
        self._filler.begin(masks)

    def close(self) -> None:
        """Ends the threads."""
        self._filler.close()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _note_running(self) -> None:
        for each in self._pending.values():
            if each.begun_at is None and each.matcher.running():
                each.begun_at = time.monotonic()

    def _replace_thread(self, late: "Sequence[Future[GrammarMatcher]]") -> None:
        """Leaves a thread to a grammar that takes too long, and has the others compiled by another."""
        self._lost = [each for each in (*self._lost, *late) if not each.done()]
        if not late or len(self._lost) > _MAX_LOST or self._thread is None:
            return
        self._thread.shutdown(wait=False)
        self._thread = None
        for each in self._pending.values():
            if each.matcher.cancel():
                each.matcher = self._pool().submit(self._make, each.add)

    def _pool(self) -> ThreadPoolExecutor:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="axon-grammars")
            before = threading.stack_size(_STACK_BYTES)
            try:
                self._thread.submit(int).result()  # starts the thread
            finally:
                threading.stack_size(before)
        return self._thread

    def _make(self, add: Add) -> GrammarMatcher:
        """Compiles a grammar, or finds it in the cache, and takes in the tokens that were emitted already."""
        try:
            text = add.sampling.grammar
            vocabulary = self._vocabulary.result()  # the thread has read it before it takes up the first grammar
            prototypes = self.cache.get(text)
            if prototypes is None:
                most = num_threads() if len(text) <= _MAX_SHARED_CHARS else 1
                prototypes = Prototypes(partial(self._compile, text, vocabulary), most=most)
            matcher = GrammarMatcher(prototypes.take(), vocabulary)
            self.cache.put(text, prototypes)
            for position, token in enumerate(add.output_ids):
                matcher.learn(position, token)
        except Misconfigured as error:
            raise Unusable(error.message) from None
        except (Unusable, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the parser is no Exception
            raise Unusable(said(str(error))) from None
        if matcher.problem:
            raise Unusable(f"the {len(add.output_ids)} tokens emitted already do not follow it: {matcher.problem}")
        return matcher

    def _compile(self, text: str, vocabulary: Vocabulary) -> "LLMatcher":
        from llguidance import LLMatcher, LLParserLimits

        if len(text.encode()) > MAX_TEXT_BYTES:
            raise Unusable(f"its text has more than {MAX_TEXT_BYTES} bytes")
        limits = LLParserLimits(**asdict(self._limits or limits_of(text)), verbose_errors=False)
        compiled = LLMatcher(vocabulary.tokenizer, text, log_level=0, limits=limits)
        if not compiled.is_error():
            compiled.compute_bitmask()  # copies then begin with what the first mask has taught the lexer
        if compiled.is_error():
            raise Unusable(said(compiled.get_error()))
        return compiled


def _outcome(pending: _Pending) -> GrammarMatcher | Refused:
    add = pending.add
    if not pending.matcher.done():
        return Refused(
            add.id, Failure.INVALID, f"The grammar cannot be used: it takes over {_TIMEOUT_S:g} s to compile."
        )
    error = pending.matcher.exception()
    if error is not None:
        return Refused(add.id, Failure.INVALID, f"The grammar cannot be used: {error}")
    return pending.matcher.result()

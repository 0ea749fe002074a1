"""The formats of tool calls by model family: which one a chat template teaches, and the parser of each."""

from collections.abc import Container, Mapping
from enum import StrEnum

from axon.text import harmony
from axon.text.tokenizer import Tokenizer
from axon.text.tools import harmony_calls, hermes, llama_json, mistral, pythonic, qwen3_coder
from axon.text.tools.pattern import Pattern, literal
from axon.text.tools.tape import CONTROL, CutOff, Enough, Reading, Said, Tape


class CallFormat(StrEnum):
    """How a family of models writes tool calls."""

    HERMES = "hermes"
    LLAMA_JSON = "llama_json"
    PYTHONIC = "pythonic"
    MISTRAL = "mistral"
    QWEN3_CODER = "qwen3_coder"
    HARMONY = "harmony"


_SIGNS = (
    (mistral.CALLS, CallFormat.MISTRAL),
    ("<function=", CallFormat.QWEN3_CODER),
    (hermes.OPEN, CallFormat.HERMES),
    ("[func_name1(", CallFormat.PYTHONIC),
    ('{"name": function name, "parameters"', CallFormat.LLAMA_JSON),
)
"""Words of a template that teach a format, the most telling first."""
_MARKS: Mapping[CallFormat, tuple[str, ...]] = {
    CallFormat.HERMES: (hermes.OPEN, hermes.CLOSE),
    CallFormat.QWEN3_CODER: (hermes.OPEN, hermes.CLOSE),
    CallFormat.MISTRAL: (mistral.CALLS, mistral.CALL_ID, mistral.ARGS),
    CallFormat.HARMONY: (harmony.CHANNEL, harmony.CONSTRAIN, harmony.MESSAGE),
}
"""Words of a format that are control tokens of some models, which have no text of their own."""


def call_format_of(source: str) -> CallFormat | None:
    """The format that a chat template teaches; None if it knows no tools, or none in a format that is known here."""
    if "tools" not in source:
        return None
    if harmony.is_harmony(source):
        return CallFormat.HARMONY
    return next((format for sign, format in _SIGNS if sign in source.replace('\\"', '"')), None)


def marks_of(format: CallFormat, tokenizer: Tokenizer) -> dict[str, int]:
    """The ids of the format's words that are control tokens of this tokenizer."""
    found = {}
    for mark in _MARKS.get(format, ()):
        if mark in tokenizer.control_texts:
            [found[mark]] = tokenizer.encode(mark, parse_special=True)
    return found


class CallSplitter:
    """Separates one choice's tool calls from its text, in text that comes in pieces."""

    def __init__(
        self,
        format: str,
        marks: Mapping[str, int],
        *,
        max_calls: int = 0,
        text_parameters: Container[str] = (),
        formed: bool = False,
    ) -> None:
        """``marks`` are the format's words that are control tokens; ``max_calls`` of 0 stands for any number.

        ``formed``: the choice is either calls, from its first character on, or text in which none are looked for.
        """
        self._has_headers = CallFormat(format) is CallFormat.HARMONY
        # The marks of headers are read before their text comes here.
        self._text_of = {} if self._has_headers else {token_id: CONTROL + mark for mark, token_id in marks.items()}
        self._tape = Tape(max_calls)
        self._parser = _parser(CallFormat(format), self._tape, marks, text_parameters)
        if formed:
            self._parser = _calls_or_text(self._tape, self._parser, _sign(CallFormat(format), marks))
        self.is_done = False
        """Whether the choice has as many calls as it may have, so that it ends here."""
        self._run()

    @property
    def has_calls(self) -> bool:
        """Whether a call has begun."""
        return self._tape.num_opened > 0

    @property
    def is_within_call(self) -> bool:
        """Whether a call has begun that is not complete."""
        return self._tape.num_opened > self._tape.num_calls

    def mark(self, token_id: int) -> str:
        """The text by which ``push`` knows a control token; empty for every other token."""
        return self._text_of.get(token_id, "")

    def opening(self, function: str) -> str:
        """The text by which ``push`` knows that the body of a message with a header is a call of this function; empty
        where calls have no headers."""
        return harmony_calls.opening(function) if self._has_headers else ""

    def push(self, piece: str) -> Said:
        """Returns the text of the answer and the pieces of calls that this piece completes."""
        if self.is_done or not piece:
            return Said()
        self._tape.buffer += piece
        self._run()
        return self._tape.take()

    def flush(self, *, cut_off: bool = False) -> Said:
        """Ends the text: returns what was held back. ``cut_off``: the answer may have no more tokens, so what may be
        the beginning of a call is left out."""
        if not self.is_done:
            self._tape.ended, self._tape.cut_off = True, cut_off
            self._run()
        return self._tape.take()

    def _run(self) -> None:
        try:
            next(self._parser, None)
        except Enough:
            self.is_done = True
        except CutOff:
            self._tape.buffer = ""


def _calls_or_text(tape: Tape, calls: Reading[None], sign: Pattern) -> Reading[None]:
    """Reads calls if the text begins with their sign; otherwise all of it is text."""
    if found := (yield from tape.expect(sign)):
        tape.buffer = found[0] + tape.buffer
        yield from calls
    else:
        yield from tape.say_rest()


def _sign(format: CallFormat, marks: Mapping[str, int]) -> Pattern:
    """The first characters of calls, as a grammar writes them. Compact JSON begins with none of them but ``[``, behind
    which the parser of pythonic calls tells a list from calls."""
    words = {CallFormat.LLAMA_JSON: '{"name": "', CallFormat.PYTHONIC: "[", CallFormat.HARMONY: harmony_calls.OPEN}
    word = words.get(format)
    word = word or _shown(mistral.CALLS if format is CallFormat.MISTRAL else hermes.OPEN, marks)
    return Pattern(r"\s*", *literal(word))


def _shown(word: str, marks: Mapping[str, int]) -> str:
    """A word of a format as it comes in the text."""
    return CONTROL + word if word in marks else word


def _parser(format: CallFormat, tape: Tape, marks: Mapping[str, int], text_parameters: Container[str]) -> Reading[None]:
    def shown(word: str) -> str:
        return _shown(word, marks)

    match format:
        case CallFormat.HERMES:
            return hermes.read(tape, shown(hermes.OPEN), shown(hermes.CLOSE))
        case CallFormat.QWEN3_CODER:
            return qwen3_coder.read(tape, shown(hermes.OPEN), shown(hermes.CLOSE), text_parameters)
        case CallFormat.MISTRAL:
            return mistral.read(tape, shown(mistral.CALLS))
        case CallFormat.LLAMA_JSON:
            return llama_json.read(tape)
        case CallFormat.PYTHONIC:
            return pythonic.read(tape)
        case CallFormat.HARMONY:
            return harmony_calls.read(tape)

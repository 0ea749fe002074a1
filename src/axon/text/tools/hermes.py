"""Hermes' and Qwen's calls: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, with text around them."""

from axon.text.tools.json_call import read_call, say_call
from axon.text.tools.pattern import Pattern, literal
from axon.text.tools.tape import Reading, Tape

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_BRACE = Pattern(r"\s*", r"(?=\{)")


def read(tape: Tape, opening: str = OPEN, closing: str = CLOSE) -> Reading[None]:
    """Reads a choice's text to its end. The tags are given where they are control tokens of the model."""
    tail = Pattern(r"\s*", *literal(closing))
    while (yield from tape.say_until(opening)):
        if (yield from read_call(tape)):
            yield from tape.expect(tail, closes=True)
        else:
            yield from _read_odd(tape, opening, closing)


def _read_odd(tape: Tape, opening: str, closing: str) -> Reading[None]:
    """Reads what does not begin as calls do: an object is gathered whole, everything else is text."""
    if not (space := (yield from tape.expect(_BRACE))):
        tape.say(opening)
        return
    parts: list[str] = []
    close = yield from tape.pass_until((closing,), parts.append)
    text, half_close = "".join(parts), "" if close else tape.cut(len(tape.buffer))
    if not say_call(tape, text) and (close or not tape.cut_off):
        tape.say(opening + space[0] + text + close + half_close)

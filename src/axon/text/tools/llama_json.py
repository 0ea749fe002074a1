"""Llama 3.1's calls: the answer is a bare JSON object with ``name`` and ``parameters``, or several after semicolons."""

from axon.text.tools.json_call import read_call
from axon.text.tools.pattern import Pattern
from axon.text.tools.tape import Reading, Tape

_NEXT = Pattern(r"\s*", ";", r"\s*", r"(?=\{)")


def read(tape: Tape) -> Reading[None]:
    """Reads a choice's text to its end; what does not begin with a call is text."""
    while (yield from read_call(tape)):
        if (yield from tape.expect(_NEXT, closes=True)) is None:
            break
    yield from tape.say_rest()

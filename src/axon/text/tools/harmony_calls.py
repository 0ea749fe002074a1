"""Calls in OpenAI's harmony format (gpt-oss): a message to ``functions.NAME``, whose body is the arguments as JSON.

``text.harmony`` reads the headers of messages; it puts ``opening`` before the body of one that is a call.
"""

from axon.text.tools.pattern import Pattern
from axon.text.tools.tape import CONTROL, Reading, Tape

OPEN, _ARGUMENTS = CONTROL + "to=functions.", CONTROL + "<|message|>"
_OBJECT = Pattern(r"\s*", r"(?=\{)")


def opening(function: str) -> str:
    """The text before the body of a message that calls this function."""
    return f"{OPEN}{function}{_ARGUMENTS}"


def read(tape: Tape) -> Reading[None]:
    """Reads a choice's text to its end. The body of a call that is no object is text."""
    while (yield from tape.say_until(OPEN)):
        name: list[str] = []
        yield from tape.pass_until((_ARGUMENTS,), name.append)
        if (yield from tape.expect(_OBJECT)) is not None:
            tape.open_call("".join(name))
            if (yield from tape.read_object(tape.add_arguments)):
                tape.close_call()

"""Mistral's calls: ``[TOOL_CALLS][{…}, {…}]`` of older models and ``[TOOL_CALLS]name{…}`` of newer ones.

The marks are control tokens of these models, so they are known by their ids; the same words in text are text.
"""

from axon.text.tools.json_call import read_call, say_call
from axon.text.tools.pattern import Pattern, literal
from axon.text.tools.tape import CONTROL, Reading, Tape

CALLS, CALL_ID, ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_LIST = Pattern(r"\s*", r"\[", r"\s*", r"(?=\{)")
_BETWEEN = Pattern(r"\s*", ",", r"\s*", r"(?=\{)")
_END = Pattern(r"\s*", r"\]")
_NAMED = Pattern(r"\s*", r"(?P<name>[\w.-]+)", r"\s*", r"(?=\{)")
_MARKED = Pattern(
    r"\s*",
    r"(?P<name>[\w.-]+)",
    *literal(CONTROL + CALL_ID),
    r"\w*",
    *literal(CONTROL + ARGS),
    r"\s*",
    r"(?=\{)",
)
_ARGS_ONLY = Pattern(r"\s*", r"(?P<name>[\w.-]+)", *literal(CONTROL + ARGS), r"\s*", r"(?=\{)")


def read(tape: Tape, calls: str = CALLS) -> Reading[None]:
    """Reads a choice's text to its end. ``calls`` is the mark before calls, as it comes in the text."""
    while (yield from tape.say_until(calls)):
        if found := (yield from tape.expect(_LIST)):
            yield from _read_list(tape, calls + found[0])
        elif name := (yield from _expect_name(tape)):
            tape.open_call(name)
            if (yield from tape.read_object(tape.add_arguments)):
                tape.close_call()
        else:
            tape.say(calls)


def _expect_name(tape: Tape) -> Reading[str]:
    while True:
        for pattern in (_NAMED, _ARGS_ONLY, _MARKED):
            if found := pattern.match(tape.buffer):
                tape.cut(found.end())
                return found["name"]
        may_begin = any(each.may_begin(tape.buffer) for each in (_NAMED, _ARGS_ONLY, _MARKED))
        if not may_begin or not (yield from tape.has_more()):
            return ""


def _read_list(tape: Tape, before: str) -> Reading[None]:
    """Reads the objects of a list; ``before`` is what was consumed before the first of them."""
    while True:
        if not (yield from read_call(tape)):
            parts: list[str] = []
            whole = yield from tape.read_object(parts.append)
            if not say_call(tape, "".join(parts)):
                if whole or not tape.cut_off:
                    tape.say(before + "".join(parts))
                return
        if (found := (yield from tape.expect(_BETWEEN, closes=True))) is None:
            yield from tape.expect(_END)
            return
        before = found[0]

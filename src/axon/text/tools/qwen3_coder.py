"""Qwen3-Coder's calls: ``<function=name>`` with ``<parameter=key>`` elements, whose values are bare text.

A value of a parameter that the tool declares as text is passed on as it comes; any other is JSON if it can be read as
such.
"""

from collections.abc import Container

from axon.text.tools.hermes import CLOSE, OPEN
from axon.text.tools.json_call import from_json, to_json
from axon.text.tools.pattern import Pattern, literal
from axon.text.tools.tape import Reading, Tape

_FUNCTION, _PARAMETER = "<function=", "<parameter="
_END_FUNCTION, _END_PARAMETER = "</function>", "</parameter>"
_NAME = Pattern(r"\s*", *literal(_FUNCTION), r"(?P<name>[^>\s]+)", r"\s*", ">")
_KEY = Pattern(r"\s*", *literal(_PARAMETER), r"(?P<key>[^>\s]+)", r"\s*", ">")
_END = Pattern(r"\s*", *literal(_END_FUNCTION))


def read(tape: Tape, opening: str = OPEN, closing: str = CLOSE, text_parameters: Container[str] = ()) -> Reading[None]:
    """Reads a choice's text to its end. ``text_parameters`` are those that are text, as ``function/parameter``."""
    tail = Pattern(r"\s*", *literal(closing))
    while mark := (yield from tape.say_until(opening, _FUNCTION)):
        if mark == _FUNCTION:  # written without the tag around it
            tape.buffer = _FUNCTION + tape.buffer
        if (found := (yield from tape.expect(_NAME))) is None:
            tape.say(mark)
            if mark == _FUNCTION:
                tape.cut(len(_FUNCTION))
            continue
        if (yield from _read_arguments(tape, found["name"], text_parameters)):
            yield from tape.expect(tail, closes=True)


def _read_arguments(tape: Tape, name: str, text_parameters: Container[str]) -> Reading[bool]:
    tape.open_call(name)
    tape.add_arguments("{")
    first = True
    while found := (yield from tape.expect(_KEY, closes=True)):
        key = found["key"]
        tape.add_arguments(("" if first else ", ") + to_json(key) + ": ")
        first = False
        if not (yield from _read_value(tape, is_text=f"{name}/{key}" in text_parameters)):
            return False
    if (yield from tape.expect(_END, closes=True)) is None:
        return False
    tape.add_arguments("}")
    tape.close_call()
    return True


def _read_value(tape: Tape, *, is_text: bool) -> Reading[bool]:
    """Reads a value up to its closing tag; a line break before the tag is no part of it, nor is a part of the tag."""
    parts: list[str] = []
    tape.add_arguments('"' if is_text else "")
    if not (yield from tape.pass_until((_END_PARAMETER,), _Value(tape).add if is_text else parts.append)):
        tape.buffer = ""
        return False
    tape.add_arguments('"' if is_text else _as_json("".join(parts).removeprefix("\n").removesuffix("\n")))
    return True


class _Value:
    """Passes on a text value, in JSON's escapes, without the line breaks at its start and end."""

    def __init__(self, tape: Tape) -> None:
        self._tape, self._held, self._begun = tape, "", False

    def add(self, text: str) -> None:
        if not text:
            return
        if not self._begun:
            self._begun, text = True, text.removeprefix("\n")
        text = self._held + text
        self._held = "\n" if text.endswith("\n") else ""
        self._tape.add_arguments(to_json(text.removesuffix("\n"))[1:-1])


def _as_json(value: str) -> str:
    try:
        return to_json(from_json(value))
    except (ValueError, RecursionError):
        return to_json(value)

"""A call that is written as a JSON object with a name and arguments, which most formats have in common."""

import json
from typing import NoReturn

from axon.text.tools.pattern import Pattern, literal
from axon.text.tools.tape import Reading, Tape

_SPACE = r"\s*"
_NAME = r'(?P<name>[^"\\]+)'


def _key(word: str) -> list[str]:
    return [*literal(f'"{word}"'), _SPACE, ":", _SPACE]


def _head(arguments: str, *before: str) -> Pattern:
    name = [*_key("name"), '"', _NAME, '"', _SPACE, ",", _SPACE]
    return Pattern(_SPACE, r"\{", _SPACE, *before, *name, *_key(arguments), r"(?=\{)")


HEADS = (
    _head("arguments"),
    _head("parameters"),
    _head("parameters", *_key("type"), *literal('"function"'), _SPACE, ",", _SPACE),
)
"""The start of a call up to its arguments, which are then passed on as they come."""
_TAIL = Pattern(_SPACE, r"\}")
_MORE_KEYS = Pattern(_SPACE, ",")


def read_call(tape: Tape) -> Reading[bool]:
    """Reads a call whose name comes before its arguments; False, with nothing consumed, if there is none."""
    name = yield from _expect_head(tape)
    if not name:
        return False
    tape.open_call(name)
    whole = yield from tape.read_object(tape.add_arguments)
    if whole:
        tape.close_call()
        if (yield from tape.expect(_TAIL)) is None and (yield from tape.expect(_MORE_KEYS)) is not None:
            tape.buffer = "{" + tape.buffer
            yield from tape.read_object(lambda text: None)
    return True


def _expect_head(tape: Tape) -> Reading[str]:
    while True:
        for head in HEADS:
            if found := head.match(tape.buffer):
                tape.cut(found.end())
                return found["name"]
        if not any(head.may_begin(tape.buffer) for head in HEADS) or not (yield from tape.has_more()):
            return ""


def say_call(tape: Tape, text: str) -> bool:
    """Adds a call that was gathered whole, whatever the order of its keys; False if the text is no call."""
    try:
        call = from_json(text)
        name = call.get("name") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(name, str) or not name.isprintable() or not name:
            return False
        arguments = call.get("arguments", call.get("parameters", {}))
        written = arguments if isinstance(arguments, str) else to_json(arguments)
    except (ValueError, RecursionError):
        return False
    tape.open_call(name)
    tape.add_arguments(written)
    tape.close_call()
    return True


def from_json(text: str) -> object:
    """The value of a JSON text; raises ``ValueError`` also for NaN and infinities, which JSON does not have."""
    value: object = json.loads(text, parse_constant=_refuse)
    return value


def to_json(value: object) -> str:
    """A value as JSON. Halves of surrogate pairs stay escaped, because no encoding has them."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False)
    return text


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")

"""Llama 3.2's and 4's calls: the answer is a Python list of calls, ``[f(a=1, b="x"), g()]``.

An argument is passed on when it is whole, because its value is rewritten as JSON.
"""

import ast
import re

from axon.text.tools.json_call import to_json
from axon.text.tools.pattern import Pattern
from axon.text.tools.tape import Reading, Tape

Literal = str | int | float | bool | None | list["Literal"] | dict[str, "Literal"]
_FIRST = Pattern(r"\s*", r"\[", r"\s*", r"(?P<name>[A-Za-z_][\w.-]*)", r"\(")
_NEXT = Pattern(r"\s*", ",", r"\s*", r"(?P<name>[A-Za-z_][\w.-]*)", r"\(")
_END = Pattern(r"\s*", r"\]")
_BEGUN = re.compile(r"\s*\w+\s*=")
_MAY_BEGIN = re.compile(r"\s*\w*\s*")
"""What may become the name of an argument."""
_JSON_NAMES = {"true": True, "false": False, "null": None, "none": None}


def read(tape: Tape) -> Reading[None]:
    """Reads a choice's text to its end; what does not begin with a list of calls is text."""
    pattern = _FIRST
    while found := (yield from tape.expect(pattern, closes=pattern is _NEXT)):
        if not (yield from _read_arguments(tape, found["name"], found[0])):
            break
        pattern = _NEXT
    else:
        if pattern is _NEXT:
            yield from tape.expect(_END)
    yield from tape.say_rest()


def _read_arguments(tape: Tape, name: str, before: str) -> Reading[bool]:
    """Reads the arguments of a call up to its closing bracket; False if they are none, and then they are text.

    ``before`` is the text of the call before its arguments.
    """
    num = 0
    while True:
        text, end = yield from _read_argument(tape)
        if end == ")" and not num and not text.strip():
            tape.open_call(name)
            tape.add_arguments("{}")
            tape.close_call()
            return True
        pair = _pair(text) if end else None
        if pair is None:
            if not end and (num or _BEGUN.match(text)):  # cut off: the call is passed on up to its last whole argument
                if not num:
                    tape.open_call(name)
                    tape.add_arguments("{")
                return False
            if not end and tape.cut_off and _MAY_BEGIN.fullmatch(text):
                return False
            tape.say(text + end if num else before + text + end)
            return False
        if not num:
            tape.open_call(name)
        tape.add_arguments(("{" if not num else ", ") + pair)
        num += 1
        if end == ")":
            tape.add_arguments("}")
            tape.close_call()
            return True


def _read_argument(tape: Tape) -> Reading[tuple[str, str]]:
    """Reads up to a comma or the closing bracket of the call; returns the text before it, and the character, which is
    empty where the text ends first."""
    depth, quote, escaped, at = 0, "", False, 0
    while True:
        while at < len(tape.buffer):
            char = tape.buffer[at]
            at += 1
            if quote:
                if escaped:
                    escaped = False
                elif char == "\\":
                    escaped = True
                elif char == quote:
                    quote = ""
            elif char in "\"'":
                quote = char
            elif char in "([{":
                depth += 1
            elif not depth and char in ",)":
                return tape.cut(at)[:-1], char
            elif char in ")]}":
                depth -= 1
        if tape.ended:
            return tape.cut(at), ""
        yield


def _pair(text: str) -> str | None:
    """``name=value`` as a member of a JSON object; None if the text is no such pair."""
    try:
        call = ast.parse(f"f({text.strip()})", mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args or len(call.keywords) != 1 or (name := call.keywords[0].arg) is None:
            return None
        return f"{to_json(name)}: {to_json(_value(call.keywords[0].value))}"
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> Literal:
    """The value of a literal; raises ``ValueError`` for everything else."""
    match node:
        case ast.Constant(value=str() | int() | float() | bool() | None as value):
            return value
        case ast.Name(id=name) if name in _JSON_NAMES:
            return _JSON_NAMES[name]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_value(each) for each in elements]
        case ast.Dict(keys=keys, values=values):
            return {_key(key): _value(value) for key, value in zip(keys, values, strict=True)}
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
    raise ValueError("no literal")


def _key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise ValueError("no text as a key")

"""Keeps what would steer a terminal, break a line or be no text at all out of log lines. Knows no sink."""

import math
import re

# Control characters beyond those that JSON escapes itself, line ends of Unicode, marks that turn the direction of
# writing, and halves of surrogate pairs, which cannot be written as UTF-8.
_IN_JSON = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_ANYWHERE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_BUT_LINES = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def in_json(line: str) -> str:
    """The same JSON, with such characters as escapes."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def on_terminal(text: str, *, keeps_lines: bool = False) -> str:
    """The text with such characters as Python writes them; ``keeps_lines`` leaves ends of lines alone."""
    return (_BUT_LINES if keeps_lines else _ANYWHERE).sub(_escape, text)


def finite(value: object) -> object:
    """None for a number that JSON has no word for."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _escape(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]

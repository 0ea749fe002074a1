"""The size of a regular expression with its counted repeats written out. Knows no regex engine.

``(a{1000}){1000}`` has 15 characters and a million states. It costs what it is written out to, so that is what is
bounded. What is no regex gets some size too; whether it is one is for the engine to say.
"""

import re

_COUNT = re.compile(r"\{\s*(\d+)\s*(?:,\s*(\d*)\s*)?\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]", re.DOTALL)
_MOST = 1_000_000_000
"""Sizes are not told apart beyond this one, so that nested repeats give no numbers of thousands of digits."""


def written_out(regex: str) -> int:
    """The number of characters and classes of the regex if every counted repeat is written out; at most ``_MOST``.

    It takes time linear in the regex, whatever that is: whoever sends it may want the opposite.
    """
    stack, total, last, index = list[int](), 0, 0, 0
    has_classes = True
    """False once a bracket is not closed: then no later one is either."""
    while index < len(regex):
        char, size = regex[index], 1
        if char == "(":
            stack.append(total)
            total, last, index = 0, 0, index + 1
            continue
        if char == ")" and stack:
            last = total
            total += stack.pop()
        elif char == "{" and (count := _COUNT.match(regex, index)):
            times = max(_number(count[1]), _number(count[2]), 1)
            total = min(_MOST, total + last * (times - 1))
            last = min(_MOST, last * times)
            size = len(count[0])
        else:
            found = _CLASS.match(regex, index) if char == "[" and has_classes else None
            has_classes = has_classes and (char != "[" or found is not None)
            size = len(found[0]) if found else 2 if char == "\\" else 1
            last = 1
            total += 1
        index += size
    return min(_MOST, total + sum(stack))


def _number(digits: str | None) -> int:
    """The number of a repeat, which may have any number of digits; none stands for 0."""
    bare = (digits or "").lstrip("0")
    return _MOST if len(bare) > 9 else int(bare or 0)

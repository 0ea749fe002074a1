"""The size of a regular expression with its counted repeats written out. Knows no regex engine.

``(a{1000}){1000}`` has 15 characters and a million states. It costs what it is written out to, so that is what is
bounded. What is no regex gets some size too; whether it is one is for the engine to say.
"""

import re

_COUNT = re.compile(r"\{(\d{1,9})(?:,(\d{0,9}))?\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]", re.DOTALL)


def written_out(regex: str) -> int:
    """The number of characters and classes of the regex if every counted repeat is written out."""
    stack, total, last, index = list[int](), 0, 0, 0
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
            total += last * (max(int(count[1]), int(count[2] or 0), 1) - 1)
            last *= max(int(count[1]), int(count[2] or 0), 1)
            size = len(count[0])
        else:
            found = _CLASS.match(regex, index) if char == "[" else None
            size = len(found[0]) if found else 2 if char == "\\" else 1
            last = 1
            total += 1
        index += size
    return total + sum(stack)

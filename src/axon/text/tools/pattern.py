"""A regex that also says whether a text may still become a match. Knows no format."""

import re
from collections.abc import Sequence


class Pattern:
    """Matches a sequence of small regexes at the start of a text that is not complete yet."""

    def __init__(self, *elements: str) -> None:
        """Each element is one character, or a repeated class of characters; the groups of the regex may not cut one."""
        self._whole = re.compile("".join(elements))
        self._partial = re.compile(_nested(elements))

    def match(self, text: str) -> re.Match[str] | None:
        """The match at the start of the text; None if there is none, or none yet."""
        return self._whole.match(text)

    def may_begin(self, text: str) -> bool:
        """Whether the text is the start of some match, so that the next characters decide."""
        return self._partial.fullmatch(text) is not None


def literal(text: str) -> list[str]:
    """The elements of a fixed text."""
    return [re.escape(char) for char in text]


def _nested(elements: Sequence[str]) -> str:
    """``abc`` as ``a?``, ``ab?``, ``abc?``: the last element that is there may be cut off at any place."""
    pattern = ""
    for element in reversed(elements):
        bare = re.sub(r"^\(\?P<\w+>(.*)\)$", r"(?:\1)", element)
        pattern = f"(?:{bare}{pattern})?"
    return pattern

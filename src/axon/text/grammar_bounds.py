"""The bounds of a Lark grammar, checked before it is compiled. Knows no compiler.

Where a grammar leaves no choice, the compiler writes the text out at once. ``e: "…" e`` has no end, and ``a: b b``,
``b: c c``, … doubles with every rule: 5 kB of rules would take seconds and 100 MB. So the shortest text of each rule is
bounded, and so is the size of each terminal, with all others that it names put in.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from axon.errors import InvalidInput
from axon.text.regex_size import written_out

MAX_LENGTH = 8_000
"""Characters that the shortest text of a rule may have, and the size of a terminal with its repeats written out."""
_ROUNDS = 6
"""Times that lengths are computed anew: each can only shrink what rules that name each other seemed to have."""
_TOKEN = re.compile(
    r'(?P<string>"(?:\\.|[^"\\\n])*"i?)|(?P<regex>/(?:\\.|[^/\\\n])+/[a-z]*)|(?P<comment>//[^\n]*|\#[^\n]*)'
    r"|(?P<alias>->\s*\w+)|(?P<count>[~{]\s*(?P<least>\d{1,9})(?:\s*(?:\.\.|,)\s*(?P<most>\d{0,9}))?\s*\}?)"
    r"|(?P<name>[!?_a-zA-Z][\w]*)|(?P<sign>[|()\[\]?*+])|(?P<other>\s+|.)",
    re.DOTALL,
)
_HEAD = re.compile(r"^[ \t]*[!?]*(\w+)(?:\.-?\d+)?(?:\[[^\]\n]*\])?[ \t]*:", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*%[^\n]*", re.MULTILINE)
_PIECES = ("string", "regex", "count", "name", "sign")


@dataclass(frozen=True, slots=True)
class _Sum:
    """How alternatives and repeats count."""

    choose: Callable[[Sequence[int]], int]
    optional: Callable[[int], int]
    repeat: Callable[[int, int, int], int]


_LENGTH = _Sum(choose=min, optional=lambda _: 0, repeat=lambda each, least, _: each * least)
_SIZE = _Sum(choose=sum, optional=lambda each: each, repeat=lambda each, least, most: each * max(least, most, 1))


def check_grammar(text: str) -> None:
    """Raises ``InvalidInput`` if a rule cannot end within the bound; other errors are for the compiler."""
    rules = dict(_rules(text))
    for name, length in _computed(rules, _LENGTH).items():
        if length > MAX_LENGTH:
            raise InvalidInput(
                f"the rule '{name[:60]}' has no end, or its shortest text more than {MAX_LENGTH} characters",
                code="invalid_grammar",
            )
    terminals = {name: body for name, body in rules.items() if name.isupper()}
    for name, size in _computed(terminals, _SIZE).items():
        if size > MAX_LENGTH:
            raise InvalidInput(
                f"the terminal '{name[:60]}' is too large: with those that it names and repeats written out, it has "
                f"more than {MAX_LENGTH} characters, or no end",
                code="invalid_grammar",
            )


def _rules(text: str) -> Iterator[tuple[str, list[re.Match[str]]]]:
    """The pieces of each rule's body, by its name."""
    text = _DIRECTIVE.sub("", text)
    heads = [*_HEAD.finditer(text)]
    for index, head in enumerate(heads):
        end = heads[index + 1].start() if index + 1 < len(heads) else len(text)
        pieces = _TOKEN.finditer(text, head.end(), end)
        yield head[1], [piece for piece in pieces if piece.lastgroup in _PIECES]


def _computed(rules: Mapping[str, list[re.Match[str]]], sum: _Sum) -> dict[str, int]:
    """The length or size of each rule; what leads to itself begins as endless, and shrinks."""
    endless = MAX_LENGTH + 1
    found = dict.fromkeys(rules, endless)
    order = _inner_first(rules)
    for _ in range(_ROUNDS):
        before = dict(found)
        for name in order:
            found[name] = min(_Body(rules[name], found, sum).value(), endless)
        if found == before:
            break
    return found


def _inner_first(rules: Mapping[str, list[re.Match[str]]]) -> list[str]:
    """The rules' names, each behind those that it names, as far as they do not name each other."""
    order: dict[str, None] = {}
    seen: set[str] = set()
    for first in rules:
        stack = [(first, False)]
        while stack:
            name, is_done = stack.pop()
            if is_done:
                order[name] = None
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack += [(each[0], False) for each in rules[name] if each.lastgroup == "name" and each[0] in rules]
    return [*order]


class _Body:
    """Reads the body of a rule and adds it up."""

    def __init__(self, pieces: list[re.Match[str]], known: Mapping[str, int], sum: _Sum) -> None:
        self._pieces, self._known, self._sum = pieces, known, sum

    def value(self) -> int:
        """The length or size of the whole body."""
        alternatives, total, last = [], 0, 0
        stack: list[tuple[list[int], int]] = []
        for piece in self._pieces:
            match piece.lastgroup, piece[0]:
                case "string", text:
                    last = len(text) - 2
                case "regex", text:
                    last = written_out(text) - 2
                case "name", text:
                    last = self._known.get(text, 0)
                case "count", _:
                    least, most = int(piece["least"]), int(piece["most"] or piece["least"])
                    total, last = total - last, self._sum.repeat(last, least, most)
                case "sign", "?" | "*":
                    total, last = total - last, self._sum.optional(last)
                case "sign", "|":
                    alternatives.append(total)
                    total, last = 0, 0
                    continue
                case "sign", "(" | "[":
                    stack.append((alternatives, total))
                    alternatives, total, last = [], 0, 0
                    continue
                case "sign", ")" | "]" as sign if stack:
                    last = self._sum.choose([*alternatives, total])
                    last = self._sum.optional(last) if sign == "]" else last
                    alternatives, total = stack.pop()
                case _:
                    continue
            total += last
        return self._sum.choose([*alternatives, total])

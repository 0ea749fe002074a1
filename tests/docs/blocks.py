"""The commands in shell blocks of README and docs/. Knows what a shell's line is, and no command.

    <!-- not run: needs a cluster -->
    ```console
    $ kubectl get pods
    ```

In a ``console`` block that has prompts, lines without one are output. What a command substitutes is a command too.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>sh|bash|shell|console)\n(?P<text>.*?)^ *```", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"<!-- not run: (.+?) -->\s*$")
_PROMPT = re.compile(r"^[\w-]*\$ ")
_HEREDOC = re.compile(r"<<'?(\w+)'?$")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_FUNCTION = re.compile(r"\w+\(\) \{(.*)\}")
_KEYWORDS = frozenset({"do", "done", "then", "fi", "else", "until", "while", "if"})
INNER = "SUBSTITUTED"
"""Stands for what a command substitutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A shell block of a page."""

    page: str
    line: int
    text: str
    why_not_run: str
    """The reason of the mark before it; empty if it has none."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a block, in words, without what was assigned before it and where its output goes."""

    words: tuple[str, ...]
    assigned: tuple[str, ...] = ()
    """Variables set for it, as in ``NAME=value command``."""


def pages() -> list[tuple[str, str]]:
    """README.md and docs/, each page's name and text."""
    paths = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    return [(path.relative_to(REPOSITORY).as_posix(), path.read_text()) for path in paths]


def blocks() -> list[Block]:
    """The shell blocks of all pages."""
    return [block for name, text in pages() for block in of_page(name, text)]


def of_page(name: str, text: str) -> Iterator[Block]:
    """The shell blocks of a page."""
    for match in _FENCE.finditer(text):
        before = text[: match.start()]
        mark = _MARK.search(before)
        inner = "\n".join(line.removeprefix(match["indent"]) for line in match["text"].splitlines())
        line = before.count("\n") + 1
        yield Block(page=name, line=line, text=inner, why_not_run=mark[1] if mark else "")


def of_ui() -> Iterator[Block]:
    """What the pages that Axon serves tell people to type."""
    folder = REPOSITORY / "src" / "axon" / "gateway" / "ui"
    for path in sorted(folder.rglob("*.html")):
        name, text = path.relative_to(REPOSITORY).as_posix(), path.read_text()
        for match in re.finditer(r"<pre>([^<]+)</pre>", text):
            line = text[: match.start()].count("\n") + 1
            yield Block(page=name, line=line, text=unescape(match[1]), why_not_run="")


def commands(text: str) -> Iterator[Command]:
    """The commands of a block, those of substitutions first."""
    for line in _lines(text):
        yield from _of_line(line)


def _lines(text: str) -> Iterator[str]:
    """Whole lines: prompts and output taken off, lines put together that go on, here-documents left out."""
    shown = text.splitlines()
    if any(_PROMPT.match(line) for line in shown):
        shown = list(_typed(shown))
    whole, end = "", ""
    for line in shown:
        if end:
            end = "" if line.strip() == end else end
            continue
        if line.endswith("\\"):
            whole += line[:-1]
            continue
        whole, is_open = _bare(whole + line)
        if is_open:
            whole += "\n"
            continue
        if heredoc := _HEREDOC.search(whole):
            end, whole = heredoc[1], whole[: heredoc.start()]
        yield whole
        whole = ""
    assert not whole, f"the block ends in the middle of a command: {whole}"


def _typed(shown: list[str]) -> Iterator[str]:
    """Of lines with prompts: what was typed."""
    goes_on = False
    for line in shown:
        if (prompt := _PROMPT.match(line)) or goes_on:
            yield line[prompt.end() :] if prompt else line
            goes_on = line.endswith("\\")


def _of_line(line: str) -> Iterator[Command]:
    while (start := line.find("$(")) >= 0:
        end = _end_of_inner(line, start + 2)
        yield from _of_line(line[start + 2 : end])
        line = line[:start] + INNER + line[end + 1 :]
    if function := _FUNCTION.fullmatch(line.strip()):
        line = function[1]
    for words in _simple(_words(line)):
        while words and words[0] in _KEYWORDS:
            words = words[1:]
        if not words or words[0] == "for":
            continue
        first = next((index for index, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
        yield Command(words=tuple(words[first:]), assigned=tuple(words[:first]))


def _end_of_inner(line: str, start: int) -> int:
    """Where the substitution that begins before ``start`` is closed."""
    depth, quote = 1, ""
    for index in range(start, len(line)):
        letter = line[index]
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter == "(") - (letter == ")")
            if depth == 0:
                return index
    raise AssertionError(f"a substitution is not closed: {line}")


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    return list(lexer)


def _bare(line: str) -> tuple[str, bool]:
    """The line without its comment, and whether a quote is open at its end. A ``#`` after a blank begins a comment."""
    quote = ""
    for index, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and (index == 0 or line[index - 1].isspace()):
            return line[:index], False
    return line, quote != ""


def _simple(words: list[str]) -> Iterator[list[str]]:
    """Commands between operators; a redirection and its file are no words of one."""
    simple: list[str] = []
    rest = iter(words)
    for word in rest:
        if word.strip("<>") == "":
            next(rest, None)
        elif word.strip(";&|") == "":
            yield simple
            simple = []
        else:
            simple.append(word)
    yield simple

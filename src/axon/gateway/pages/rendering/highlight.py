"""Code as HTML with a CSS class for each kind of word. No I/O; knows no Markdown.

A lexer is a set of regular expressions, and nearly all lexers take more than linear time over text that is made for
them: of 27 that were tried with 889 hostile texts of 2,000 characters each, six took more than half a second for some.
So there is a short list of languages, and the caller bounds the time. Each of their lexers ends in the middle of a text
when a signal's handler raises, and works as before with the next one: a test interrupts them all.
"""

from functools import cache

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

_NAMES = {
    "bash": "sh shell zsh",
    "c": "h",
    "cpp": "c++ cc hpp",
    "csharp": "c# cs",
    "css": "",
    "diff": "patch",
    "docker": "dockerfile",
    "go": "golang",
    "html": "",
    "ini": "cfg properties",
    "java": "",
    "javascript": "js jsx mjs node",
    "json": "jsonc json5 jsonl",
    "kotlin": "kt",
    "lua": "",
    "php": "",
    "powershell": "ps1 pwsh",
    "python": "py python3",
    "r": "",
    "ruby": "rb",
    "rust": "rs",
    "sql": "postgresql mysql sqlite",
    "swift": "",
    "toml": "",
    "typescript": "ts tsx",
    "xml": "svg",
    "yaml": "yml",
}
"""The lexers of the list, with other names that models give their languages."""
LANGUAGES = {name: lexer for lexer, names in _NAMES.items() for name in (lexer, *names.split())}
"""The lexer of each name."""


def coloured(source: str, language: str) -> str:
    """Returns the highlighted code; empty where the language is not highlighted."""
    name = LANGUAGES.get(language.lower())
    return highlight(source, _lexer(name), _formatter()) if name is not None else ""


def warm() -> None:
    """Makes what every text with code needs."""
    coloured("x = 1\n", "python")


@cache
def _formatter() -> HtmlFormatter[str]:
    return HtmlFormatter(nowrap=True)


@cache
def _lexer(name: str) -> Lexer:
    """Returns a lexer of the list, which bounds how many are kept."""
    return get_lexer_by_name(name, stripnl=False)

"""Markdown to HTML that is safe to show: a model's text becomes tags from a short list, and nothing else. No I/O.

There are two walls. The parser runs with HTML off, so that a tag in the text is text; and what comes out of the
renderers is read again and written anew from a list of allowed tags, attributes and addresses (``allowed``).
"""

from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from axon.gateway.pages.allowed import escape_text, only_allowed

MAX_CHARS = 200_000
"""Largest text that is rendered; a longer one stays plain text."""
_MAX_PARAGRAPH = 10_000
"""Most characters of a paragraph whose marks are read: the time for it grows with the square of its length."""
_PIECE_LINES = 50
_MAX_HIGHLIGHTED = 40_000
"""Most characters of a block of code that are highlighted."""
_MAX_MATHS = 2_000
"""Most characters of a formula."""
_MAX_LANGUAGE = 40
_BRACKETS = {"\\(": "\\)", "\\[": "\\]"}
_NESTING = 40
"""Deepest nesting of quotes and lists."""


def render(text: str) -> str:
    """Returns the text as HTML, with nothing in it but allowed tags and attributes."""
    environment: dict[str, Any] = {}
    return only_allowed(_parser().render(text[:MAX_CHARS], environment))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": _NESTING})
    parser.enable(["table", "strikethrough"])
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True, renderer=_maths)
    parser.inline.ruler.before("escape", "brackets", _bracketed_maths)
    parser.core.ruler.before("inline", "long_paragraphs", _long_paragraphs)
    parser.core.ruler.push("lower_headings", _lower_headings)
    parser.add_render_rule("bracketed", _bracketed)
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("code_block", _fence)
    parser.add_render_rule("image", _image)
    parser.add_render_rule("link_open", _link_open)
    return parser


def _bracketed_maths(state: StateInline, silent: bool) -> bool:
    r"""Reads maths between ``\(`` and ``\)`` or between ``\[`` and ``\]``, as many models write it."""
    close = _BRACKETS.get(state.src[state.pos : state.pos + 2])
    end = state.src.find(close, state.pos + 2, state.pos + _MAX_MATHS + 4) if close else -1
    if close is None or end < 0 or not state.src[state.pos + 2 : end].strip():
        return False
    if not silent:
        token = state.push("bracketed", "math", 0)
        token.content, token.markup = state.src[state.pos + 2 : end], close
    state.pos = end + 2
    return True


def _bracketed(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, environment: MutableMapping[str, Any]
) -> str:
    return _maths(tokens[index].content, {"display_mode": tokens[index].markup == "\\]"})


def _long_paragraphs(state: StateCore) -> None:
    """Leaves the text of a paragraph that is too long as it is, in pieces that a browser lays out when it must."""
    tokens: list[Token] = []
    for token in state.tokens:
        if token.type != "inline" or len(token.content) <= _MAX_PARAGRAPH:
            tokens.append(token)
        elif tokens[-1].type == "paragraph_open":
            tokens += _pieces(tokens.pop(), token)[:-1]  # the last one's end is there
        else:
            tokens.append(_as_it_is(token, token.content))
    state.tokens = tokens


def _pieces(begin: Token, inline: Token) -> list[Token]:
    """Returns the tokens of several paragraphs in the place of one."""
    lines, end = inline.content.split("\n"), Token("paragraph_close", "p", -1, block=True)
    found: list[Token] = []
    for first in range(0, len(lines), _PIECE_LINES):
        start = replace(begin, attrs={"class": "piece"})
        found += [start, _as_it_is(inline, "\n".join(lines[first : first + _PIECE_LINES])), end]
    return found


def _as_it_is(inline: Token, text: str) -> Token:
    """Returns the token of this text, in which no marks are read, with its lines."""
    children: list[Token] = []
    for line in text.split("\n"):
        children += [Token("text", "", 0, content=line), Token("hardbreak", "br", 0)]
    return replace(inline, content="", children=children[:-1])


def _lower_headings(state: StateCore) -> None:
    """Puts an answer's headings below those of the page, which are of the first two levels, and leaves out no level: a
    screen reader goes from one to the next."""
    above: list[str] = []
    for token in state.tokens:
        if token.type == "heading_open":
            while above and above[-1] >= token.tag:
                above.pop()
            above.append(token.tag)
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, 2 + len(above))}"


def _maths(source: str, options: MutableMapping[str, Any]) -> str:
    """Returns a formula as MathML; its source as code if it cannot be read."""
    if len(source) <= _MAX_MATHS:
        try:
            return convert(source, display="block" if options.get("display_mode") else "inline")
        except (
            Exception
        ):  # the converter raises errors of many kinds, and a formula that it cannot read is shown as it is
            pass
    return f"<code>{escape_text(source)}</code>"


def _fence(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, environment: MutableMapping[str, Any]
) -> str:
    """Returns a block of code with its language's name, coloured by CSS classes where the language is known."""
    token = tokens[index]
    language = (token.info or "").strip().split(maxsplit=1)[0:1]
    name = language[0][:_MAX_LANGUAGE] if language else ""
    body = _coloured(token.content, name) or escape_text(token.content)
    return f'<pre class="code" data-language="{escape_text(name)}"><code>{body}</code></pre>\n'


def _coloured(source: str, language: str) -> str:
    """Returns the highlighted code; empty where the language is unknown or the block is too large."""
    lexer = _lexer(language.lower()) if len(source) <= _MAX_HIGHLIGHTED else None
    return highlight(source, lexer, HtmlFormatter(nowrap=True)) if lexer is not None else ""


@cache
def _lexers() -> dict[str, Lexer | None]:
    return {}


def _lexer(language: str) -> Lexer | None:
    """Returns the lexer of a language; None for an unknown one. Known ones are kept."""
    kept = _lexers()
    if language not in kept and len(kept) < 200:
        try:
            kept[language] = get_lexer_by_name(language, stripnl=False) if language else None
        except ClassNotFound:
            return None
    return kept.get(language)


def _image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, environment: MutableMapping[str, Any]
) -> str:
    """Returns a link to the image: nothing is fetched from another host by looking at an answer."""
    source = str(tokens[index].attrs.get("src", ""))
    words = escape_text(tokens[index].content or source)
    return f'<a href="{escape_text(source)}">{words}</a>' if is_harmless(source) else words


def _link_open(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, environment: MutableMapping[str, Any]
) -> str:
    address = str(tokens[index].attrs.get("href", ""))
    return f'<a href="{escape_text(address)}">' if is_harmless(address) else "<a>"


def is_harmless(address: str) -> bool:
    """Returns whether a link may lead there: to a web page or a mail address, named in full."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    if parts.scheme == "mailto":
        return bool(parts.path)
    return parts.scheme in ("http", "https") and bool(parts.netloc)

"""Markdown to HTML that is safe to show: a model's text becomes tags from a short list, and nothing else. No I/O.

There are two walls. The parser runs with HTML off, so that a tag in the text is text; and what comes out of the
renderers is read again and written anew from a list of allowed tags, attributes and addresses (``allowed``).
"""

import re
from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from axon.gateway.pages.rendering import highlight
from axon.gateway.pages.rendering.allowance import Allowance
from axon.gateway.pages.rendering.allowed import escape_text, only_allowed
from axon.gateway.pages.rendering.plain import MAX_CHARS, PIECE_LINES

_MAX_PARAGRAPH = 10_000
"""Most characters of a paragraph whose marks are read: the time for it grows with the square of its length."""
_MAX_HIGHLIGHTED = 40_000
"""Most characters of a block of code that are highlighted."""
_MAX_MATHS = 2_000
"""Most characters of a formula."""
_MAX_LANGUAGE = 40
_EXTRAS_S = 0.5
"""Processor time for all colours and formulas of a text, in seconds; what comes behind is shown as it is."""
_EXTRAS_CHARS = 400_000
"""HTML of all colours and formulas of a text. To write it anew takes about 0.6 s of processor time for a million
characters, which code of many short words has after 40,000: too much beside the rest of the text."""
_BRACKETS = {"\\(": "\\)", "\\[": "\\]"}
_REFERENCE = re.compile(r"&amp;(#x[0-9A-Fa-f]{1,6};)")
_NESTING = 40
"""Deepest nesting of quotes and lists."""
_extras = Allowance(0.0, 0)
"""That of the text that is being rendered: the renderers are given none of it."""


def render(text: str, *, extras_s: float = _EXTRAS_S) -> str:
    """Returns the text as HTML, with nothing in it but allowed tags and attributes. Works in a main thread alone."""
    global _extras
    _extras = Allowance(extras_s, _EXTRAS_CHARS)
    environment: dict[str, Any] = {}
    return only_allowed(_parser().render(text[:MAX_CHARS], environment))


def warm() -> None:
    """Makes what every text needs."""
    highlight.warm()
    render("$x$")


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
    for first in range(0, len(lines), PIECE_LINES):
        start = replace(begin, attrs={"class": "piece"})
        found += [start, _as_it_is(inline, "\n".join(lines[first : first + PIECE_LINES])), end]
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
        display = "block" if options.get("display_mode") else "inline"
        try:
            if (made := _extras.within(lambda: _mathml(source, display))) is not None:
                return made
        except MemoryError:
            raise
        except Exception:  # the library raises errors of many kinds for a formula that it cannot read
            pass
    return f"<code>{escape_text(source)}</code>"


def _mathml(source: str, display: str) -> str:
    """Returns a formula as MathML. The library writes characters as references (``&#x27E8;``) into an element's text,
    and its own writer takes all else in there for markup too: of ``\\text{a<b}`` it would make a tag."""
    written = tostring(convert_to_element(source, display=display), encoding="unicode")
    return _REFERENCE.sub(r"&\1", written)


def _fence(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, environment: MutableMapping[str, Any]
) -> str:
    """Returns a block of code with its language's name, coloured by CSS classes where the language is known."""
    token = tokens[index]
    language = (token.info or "").strip().split(maxsplit=1)[0:1]
    name = language[0][:_MAX_LANGUAGE] if language else ""
    coloured: str | None = None
    if len(token.content) <= _MAX_HIGHLIGHTED:
        coloured = _extras.within(lambda: highlight.coloured(token.content, name))
    body = coloured or escape_text(token.content)
    return f'<pre class="code" data-language="{escape_text(name)}"><code>{body}</code></pre>\n'


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

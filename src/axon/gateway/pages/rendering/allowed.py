"""Writes HTML anew from a list of allowed tags, attributes and values; everything else becomes text or is left out.

The result is always well-formed: what is not closed is closed, and what was never opened is left out. No I/O.
"""

import re
from collections.abc import Iterable
from html import escape
from html.parser import HTMLParser
from urllib.parse import urlsplit

_MATHS = frozenset(
    {"math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "msup", "msub", "msubsup", "mfrac", "msqrt", "mroot"}
    | {"mover", "munder", "munderover", "mtable", "mtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose"}
    | {"mmultiscripts", "mprescripts", "none"}
)
_WORDS = frozenset(
    {"p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong"}
    | {"s", "a", "table", "thead", "tbody", "tr", "th", "td", "span", "div"}
)
TAGS = _MATHS | _WORDS
"""Every tag that may come out."""
_VOID = frozenset({"br", "hr", "mspace", "mprescripts", "none"})
_NUMBER = re.compile(r"[0-9]{1,9}")
_MEASURE = re.compile(r"-?[0-9.]{1,8}(em|ex|px|pt|%)?|true|false|thin|medium|thick")
_CLASSES = re.compile(r"[a-z0-9 _-]{1,60}", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z0-9+#._-]{0,40}")
_WORD = re.compile(r"[a-z-]{1,30}")
_MATHS_ATTRIBUTES = {
    "display": re.compile(r"block|inline"),
    "mathvariant": _WORD,
    "stretchy": _MEASURE,
    "fence": _MEASURE,
    "form": _WORD,
    "separator": _MEASURE,
    "lspace": _MEASURE,
    "rspace": _MEASURE,
    "width": _MEASURE,
    "height": _MEASURE,
    "depth": _MEASURE,
    "linethickness": _MEASURE,
    "minsize": _MEASURE,
    "maxsize": _MEASURE,
    "movablelimits": _MEASURE,
    "accent": _MEASURE,
    "displaystyle": _MEASURE,
    "scriptlevel": _MEASURE,
    "columnalign": re.compile(r"(left|right|center| ){1,60}"),
    "notation": _WORD,
}
ATTRIBUTES = {
    "a": {"href": re.compile(r"(https?://|mailto:)[^\s\x00-\x20]*", re.IGNORECASE)},
    "span": {"class": _CLASSES},
    "pre": {"class": re.compile("code"), "data-language": _LANGUAGE},
    "p": {"class": re.compile("piece")},
    "ol": {"start": _NUMBER},
    "th": {"style": re.compile("text-align:(left|right|center)")},
    "td": {"style": re.compile("text-align:(left|right|center)")},
    **dict.fromkeys(_MATHS, _MATHS_ATTRIBUTES),
}
"""The attributes that each tag may have, with the form of their whole value. Of a cell's style, a class is made."""
_LINK = ' target="_blank" rel="noopener nofollow noreferrer"'
_MAX_DEPTH = 120


def escape_text(text: str) -> str:
    """Returns the text as it is written in HTML, in quotes too."""
    return escape(text, quote=True)


def only_allowed(html: str) -> str:
    """Returns the allowed part of the HTML."""
    writer = _Writer()
    writer.feed(html)
    writer.close()
    return writer.finished()


class _Writer(HTMLParser):
    """Reads tags and text, and writes what is allowed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS or len(self._open) >= _MAX_DEPTH:
            return
        self._parts.append(f"<{tag}{''.join(_written(tag, attrs))}>")
        if tag not in _VOID:
            self._open.append(tag)
        elif tag in _MATHS:
            self._parts.append(f"</{tag}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag in TAGS and tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._open:
            return
        while (last := self._open.pop()) != tag:
            self._parts.append(f"</{last}>")
        self._parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self._parts.append(escape(data, quote=False))

    def finished(self) -> str:
        """Returns what was written, with everything closed that is still open."""
        return "".join([*self._parts, *(f"</{tag}>" for tag in reversed(self._open))])


def _written(tag: str, attributes: Iterable[tuple[str, str | None]]) -> Iterable[str]:
    """Yields the allowed attributes, each once."""
    allowed, seen = ATTRIBUTES.get(tag, {}), set()
    for name, value in attributes:
        form = allowed.get(name)
        if form is None or name in seen or value is None or not form.fullmatch(value) or not _leads_on(name, value):
            continue
        seen.add(name)
        if name == "style":
            yield f' class="{value.partition(":")[2]}"'
        else:
            yield f' {name}="{escape(value, quote=True)}"'
    if "href" in seen:
        yield _LINK


def _leads_on(name: str, value: str) -> bool:
    """Returns whether an address can be read as one."""
    if name != "href":
        return True
    try:
        return bool(urlsplit(value).scheme)
    except ValueError:
        return False

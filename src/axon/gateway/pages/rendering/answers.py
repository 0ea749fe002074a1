"""The answer of a process that renders texts: its first byte says whether the text's HTML is behind it. No I/O."""

MAX_HTML_BYTES = 2 << 20
"""Largest HTML of a text. A browser needs many times its size for it."""
MAX_BYTES = MAX_HTML_BYTES + 1
_FORMATTED, NOT_FORMATTED = b"\x01", b"\x00"


def answer_of(html: str) -> bytes:
    """Returns the answer with this HTML, or without it if it is too large."""
    body = html.encode()
    return _FORMATTED + body if len(body) <= MAX_HTML_BYTES else NOT_FORMATTED


def html_in(answer: bytes) -> str | None:
    """Returns the HTML that an answer brings; None if it brings none."""
    return answer[1:].decode() if answer.startswith(_FORMATTED) else None

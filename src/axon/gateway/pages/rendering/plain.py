"""A text as HTML without any formatting: what is shown of one that costs too much to format. No I/O."""

from html import escape

MAX_CHARS = 200_000
"""Largest text that is rendered; a longer one stays plain text at the page."""
PIECE_LINES = 50
"""Lines of a paragraph of plain text: a browser lays out a piece when it must."""


def plain(text: str) -> str:
    """Returns the text's characters and lines, and nothing else."""
    lines = text.split("\n")
    pieces = (lines[first : first + PIECE_LINES] for first in range(0, len(lines), PIECE_LINES))
    return "".join(f'<p class="piece">{"<br>".join(escape(line) for line in piece)}</p>\n' for piece in pieces)

"""Tables as lines of a given width: which columns fit, how many rows each table gets. Pure, and knows no content.

Widths are of terminal cells: some characters take two, and some none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from unicodedata import category

from rich.cells import cell_len, set_cell_size

_GAP = 2
"""Cells between two columns."""
_LEAST = 8
"""Cells that the first column keeps at least, before other columns are left out for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table. The first one is always shown."""

    title: str
    rank: int = 0
    """Where there is no room for all, those with the highest rank are left out first."""
    is_number: bool = True
    """Numbers are aligned at their end, words at their beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table of cells, before it is fitted to a terminal."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...] = ()
    num_rows: int = 0
    """All rows that there are, of which ``rows`` may be the first ones."""
    marked: frozenset[int] = field(default_factory=frozenset)
    """Indexes of rows that want attention."""
    empty: str = ""
    """The sentence that is shown in place of rows where there are none."""


def clean(text: str) -> str:
    """The text without what would move a terminal's cursor or change its colours."""
    return "".join(each if each.isprintable() or category(each) in ("Mn", "Mc") else "?" for each in text)


def cut(text: str, width: int) -> str:
    """The text in at most ``width`` cells; what was cut off is shown by an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else "…"


def lines(grid: Grid, width: int) -> list[str]:
    """The titles and the rows, each in at most ``width`` cells."""
    if width <= 0:
        return [""] * (len(grid.rows) + 1)
    table = [tuple(column.title for column in grid.columns), *grid.rows]
    widths = [max(cell_len(row[index]) for row in table) for index in range(len(grid.columns))]
    shown = _fitting(grid.columns, widths, width)
    rest = sum(widths[index] + _GAP for index in shown[1:])
    first = max(1, min(widths[shown[0]], width - rest))
    return [
        cut(
            (" " * _GAP)
            .join(
                _cell(row[index], first if place == 0 else widths[index], grid.columns[index].is_number)
                for place, index in enumerate(shown)
            )
            .rstrip(),
            width,
        )
        for row in table
    ]


def shared_rows(wanted: Sequence[int], room: int) -> list[int]:
    """How many rows each table gets of ``room``: what it wants, if all have room, else about the same for each."""
    given = [0] * len(wanted)
    left = max(0, room)
    while left > 0 and (short := [index for index, num in enumerate(wanted) if given[index] < num]):
        part = max(1, left // len(short))
        for index in short:
            more = min(part, wanted[index] - given[index], left)
            given[index] += more
            left -= more
    return given


def _fitting(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    """Indexes of the columns that are shown, in their order."""
    shown = list(range(len(columns)))
    while len(shown) > 1:
        least = min(widths[0], _LEAST) + sum(widths[index] + _GAP for index in shown[1:])
        if least <= width:
            break
        shown.remove(max(shown[1:], key=lambda index: (columns[index].rank, index)))
    return shown


def _cell(text: str, width: int, is_number: bool) -> str:
    fitted = cut(text, width)
    padding = " " * (width - cell_len(fitted))
    return padding + fitted if is_number else fitted + padding

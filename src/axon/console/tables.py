"""Prints tables for people. Knows nothing of their content."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from axon.runtime.printable import on_terminal

_UNLIMITED = 10_000


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Fits a terminal by folding; elsewhere every row is one line. No cell steers the terminal."""
    console = Console()
    if not console.is_terminal:
        console.width = _UNLIMITED
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=not console.is_terminal)
    for row in rows:
        table.add_row(*(Text(on_terminal(cell)) for cell in row))
    console.print(table)

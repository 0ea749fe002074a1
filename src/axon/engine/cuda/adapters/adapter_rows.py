"""The rows of a step sorted by adapter, as arrays that are sent to the device. Knows no tensors and no kernel."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from axon.engine.batch import Span
from axon.engine.cuda.step.step_arrays import Array

MOST_PAGES = 4
"""The most pages of an adapter."""
Pages = Mapping[str, tuple[int, ...]]
"""The pages of each adapter by its digest."""


def pages_needed(spans: Sequence[Span], pages: Pages) -> int:
    """Pages of an adapter for which a step needs room: one, where no adapter has more, or the most; 0 without any.

    Two kinds of steps suffice: most adapters have one page, and kernels for more have idle programs then.
    """
    most = max((len(pages[span.adapter]) for span in spans if span.adapter), default=0)
    return MOST_PAGES if most > 1 else most


def decoded_rows(spans: Sequence[Span], pages: Pages, num_pages: int, tile: int, num_rows: int) -> dict[str, Array]:
    """The arrays of a step of decodes, one row a span, with room for ``num_rows`` tiles and rows."""
    runs = ((span.adapter, 1) for span in spans)
    return _arrays("adapter", runs, pages, num_pages, tile, num_rows, num_rows)


def chunked_rows(spans: Sequence[Span], pages: Pages, num_pages: int, tile: int) -> dict[str, Array]:
    """The arrays of a step with prompt chunks: for all its rows, and for those that have a result."""
    kept = [(span.adapter, len(span.drawn)) for span in spans if span.draw is not None]
    kept += [(span.adapter, len(span.scores)) for span in spans if span.scores]
    every = ((span.adapter, len(span.token_ids)) for span in spans)
    all_rows = _arrays("adapter", every, pages, num_pages, tile)
    return all_rows | _arrays("kept_adapter", kept, pages, num_pages, tile)


def no_chunked_rows(num_rows: int, num_spans: int, num_pages: int, tile: int) -> dict[str, Array]:
    """The arrays of ``chunked_rows`` without adapters, with room for so many rows and spans."""
    num_tiles = most_tiles(num_rows, num_spans, tile)
    all_rows = _arrays("adapter", (), {}, num_pages, tile, num_tiles, num_rows)
    return all_rows | _arrays("kept_adapter", (), {}, num_pages, tile, num_spans, num_spans)


def most_tiles(num_rows: int, num_spans: int, tile: int) -> int:
    """The most tiles that the rows of so many spans can need."""
    return min(num_rows, num_spans + num_rows // tile)


def _arrays(
    name: str,
    runs: Iterable[tuple[str, int]],
    pages: Pages,
    num_pages: int,
    tile: int,
    num_tiles: int = 1,
    num_rows: int = 1,
) -> dict[str, Array]:
    """``NAME_tiles`` and ``NAME_rows`` of runs of rows with one adapter each; padded with empty tiles and rows that no
    tile has."""
    rows_of: dict[str, list[int]] = {}
    end = 0
    for digest, count in runs:
        if digest:
            rows_of.setdefault(digest, []).extend(range(end, end + count))
        end += count
    used: list[tuple[int, ...]] = []
    rows: list[int] = []
    for digest, own in rows_of.items():
        held = pages[digest] + (-1,) * (num_pages - len(pages[digest]))
        used += [(len(rows) + first, min(tile, len(own) - first), *held) for first in range(0, len(own), tile)]
        rows += own
    tiles = np.full((max(num_tiles, len(used)), 2 + num_pages), -1, np.int32)
    tiles[:, :2] = 0
    if used:
        tiles[: len(used)] = used
    padded = np.zeros(max(num_rows, len(rows)), np.int32)
    padded[: len(rows)] = rows
    return {f"{name}_tiles": tiles, f"{name}_rows": padded}

"""A step as the arrays that are sent to the device. Knows no tensors and no model.

Decodes (one token of a sequence) stand first, chunks of prompts behind them. A placeholder becomes -1 - n: the n-th
token that the step before has drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axon.engine.batch import PLACEHOLDER, Draw, Span
from axon.engine.cuda.sample.uniform import uniforms
from axon.engine.cuda.step.table_slots import Slots

Array = npt.NDArray[Any]

_ALIGNMENT = 16  # numbers: whole cache lines, and room for float64 at every start


@dataclass(frozen=True, slots=True)
class Packed:
    """Each span's slot, and the blocks to enter into the block tables by a kernel of their own."""

    slots: list[int]
    new_places: list[int]
    new_blocks: list[int]


class Decodes:
    """The buffer of a step of decodes: every array at a fixed offset, so that a CUDA graph can read it."""

    FIELDS = ("ids", "positions", "slots", "new_places", "new_blocks", "inverse_temperatures", "numbers")

    def __init__(self, max_rows: int) -> None:
        self.max_rows = -(-max_rows // _ALIGNMENT) * _ALIGNMENT
        self.num_words = 8 * self.max_rows

    def views(self, words: Any, float32: Any, float64: Any) -> dict[str, Any]:
        """The arrays in a buffer of 32-bit words, which may be numpy's or torch's."""
        size = self.max_rows
        parts = {name: words[index * size : (index + 1) * size] for index, name in enumerate(self.FIELDS[:-1])}
        parts["inverse_temperatures"] = parts["inverse_temperatures"].view(float32)
        parts["numbers"] = words[6 * size : 8 * size].view(float64)
        return parts

    def write(
        self, views: Mapping[str, Array], spans: Sequence[Span], slots: Slots, latest: Mapping[int, int]
    ) -> Packed:
        """Fills the arrays; returns the new blocks of rows that have more than one, which are sent separately."""
        count = len(spans)
        places = slots.take(spans)
        packed = Packed(places, [], [])
        views["ids"][:count] = [_id(span, latest) for span in spans]
        views["positions"][:count] = [span.first for span in spans]
        views["slots"][:count] = places
        new_places = [-1] * count
        new_blocks = [0] * count
        for index, (span, slot) in enumerate(zip(spans, places, strict=True)):
            place, blocks = slots.new_blocks(span, slot)
            if len(blocks) == 1:
                new_places[index], new_blocks[index] = place, blocks[0]
            elif blocks:
                packed.new_places.extend(range(place, place + len(blocks)))
                packed.new_blocks.extend(blocks)
        views["new_places"][:count] = new_places
        views["new_blocks"][:count] = new_blocks
        views["inverse_temperatures"][:count] = slots.inverse_temperatures[places]
        views["numbers"][:count] = _numbers([span.draw for span in spans], places, slots)
        return packed

    def pad(self, views: Mapping[str, Array], count: int, num_rows: int, slots: Slots) -> None:
        """Fills the rows from ``count`` on with padding, which writes to the spare block."""
        for name in ("ids", "positions", "new_blocks", "inverse_temperatures", "numbers"):
            views[name][count:num_rows] = 0
        views["new_places"][count:num_rows] = -1
        views["slots"][count:num_rows] = slots.spare_slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """A step with prompt chunks: its arrays by name, and how many of its rows are decodes."""

    arrays: dict[str, Array]
    num_decodes: int
    num_rows: int


def pack_mixed(
    spans: Sequence[Span], slots: Slots, latest: Mapping[int, int], queries_per_tile: int, *, as_chunks: bool = False
) -> tuple[Mixed, Packed]:
    """Packs ``spans``, decodes first; draws are in their order. ``as_chunks``: decodes are packed as chunks."""
    places = slots.take(spans)
    packed = Packed(places, [], [])
    for span, slot in zip(spans, places, strict=True):
        place, blocks = slots.new_blocks(span, slot)
        packed.new_places.extend(range(place, place + len(blocks)))
        packed.new_blocks.extend(blocks)
    lengths = np.array([len(span.token_ids) for span in spans])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    drawn = [(slot, draw) for span, slot in zip(spans, places, strict=True) for draw in span.drawn]
    drawn_slots = [slot for slot, _ in drawn]
    arrays: dict[str, Array] = {
        "ids": np.concatenate([np.array(_ids(span, latest), np.int32) for span in spans]),
        "positions": np.concatenate([np.arange(span.first, span.end, dtype=np.int32) for span in spans]),
        "slots": np.repeat(np.array(places, np.int32), lengths),
        "tiles": _tiles(spans, starts, places, queries_per_tile, 1 if as_chunks else 2),
        "drawn_rows": _drawn_rows(spans, starts),
        "inverse_temperatures": slots.inverse_temperatures[drawn_slots],
        "numbers": _numbers([draw for _, draw in drawn], drawn_slots, slots),
    }
    if any(span.scores for span in spans):
        arrays |= _scored(spans, starts)
    num_decodes = 0 if as_chunks else sum(len(span.token_ids) == 1 for span in spans)
    return Mixed(arrays=arrays, num_decodes=num_decodes, num_rows=int(starts[-1])), packed


def order(spans: Sequence[Span]) -> list[Span]:
    """The spans with decodes first, and the longest context first."""
    return sorted(spans, key=lambda span: (len(span.token_ids) > 1, -span.first))


def places_of(spans: Sequence[Span]) -> dict[int, int]:
    """Where each sequence's first token stands among the drawn ones, by arrival; those of its drafts follow it."""
    places: dict[int, int] = {}
    end = 0
    for span in spans:
        if span.draw is not None:
            places[span.arrival] = end
            end += len(span.drawn)
    return places


class Chunks:
    """The array shapes of a CUDA graph with prompt chunks: ``num_tokens`` rows, padded where there are fewer."""

    MAX_SPANS = 16

    def __init__(
        self,
        num_tokens: int,
        queries_per_tile: int,
        more: Mapping[str, Array] | None = None,
        *,
        max_spans: int = MAX_SPANS,
    ) -> None:
        """``more``: arrays beside those that every step has, padded likewise. ``max_spans``: most spans, and most draws
        of all spans together."""
        num_tiles = min(num_tokens, -(-num_tokens // queries_per_tile) + max_spans)
        self.num_tokens = num_tokens
        own: dict[str, Array] = {
            "ids": np.zeros(num_tokens, np.int32),
            "positions": np.zeros(num_tokens, np.int32),
            "slots": np.zeros(num_tokens, np.int32),
            "tiles": np.zeros((num_tiles, 4), np.int32),
            "drawn_rows": np.zeros(max_spans, np.int32),
            "inverse_temperatures": np.zeros(max_spans, np.float32),
            "numbers": np.zeros(max_spans, np.float64),
        }
        self.empty = own | dict(more or {})

    def pad(self, arrays: Mapping[str, Array], spare_slot: int) -> dict[str, Array]:
        """The arrays padded with rows that write to the spare block, and with empty tiles."""
        padded = {name: empty.copy() for name, empty in self.empty.items()}
        padded["slots"][:] = spare_slot
        for name, array in arrays.items():
            padded[name][: len(array)] = array
        return padded


def halve(spans: Sequence[Span]) -> tuple[list[Span], list[Span]] | None:
    """Two steps that together give the same results; None if there is nothing to halve."""
    if len(spans) > 1:
        middle = len(spans) // 2
        return list(spans[:middle]), list(spans[middle:])
    [span] = spans
    middle = len(span.token_ids) // 2
    if not middle:
        return None
    if span.drafts:  # each of its tokens has a draw behind it
        head = replace(span, token_ids=span.token_ids[:middle], drafts=span.drafts[: middle - 1])
        draw, *drafts = span.drafts[middle - 1 :]
        tail = replace(
            span, first=span.first + middle, token_ids=span.token_ids[middle:], draw=draw, drafts=tuple(drafts)
        )
        return [head], [tail]
    num_unscored = len(span.token_ids) - len(span.draws)
    num_scores = min(max(0, middle - num_unscored), len(span.scores))
    head = replace(span, token_ids=span.token_ids[:middle], draw=None, scores=span.scores[:num_scores])
    tail = replace(span, first=span.first + middle, token_ids=span.token_ids[middle:], scores=span.scores[num_scores:])
    return [head], [tail]


def layout(arrays: Mapping[str, Array]) -> tuple[dict[str, int], int]:
    """Offset of each array in one buffer of 32-bit words, and the number of words in the buffer."""
    starts: dict[str, int] = {}
    end = 0
    for name, array in arrays.items():
        starts[name] = end
        end += -(-array.nbytes // (4 * _ALIGNMENT)) * _ALIGNMENT
    return starts, end


def _id(span: Span, latest: Mapping[int, int]) -> int:
    id = span.token_ids[-1]
    return id if id != PLACEHOLDER else -1 - latest[span.arrival]


def _ids(span: Span, latest: Mapping[int, int]) -> tuple[int, ...]:
    if span.token_ids[-1] != PLACEHOLDER:
        return span.token_ids
    return (*span.token_ids[:-1], -1 - latest[span.arrival])


def _numbers(draws: Sequence[Draw | None], places: list[int], slots: Slots) -> npt.NDArray[np.float64]:
    positions = np.array([0 if draw is None else draw.position for draw in draws], np.int64)
    return uniforms(slots.states[places], positions)


def _drawn_rows(spans: Sequence[Span], starts: Array) -> Array:
    """The rows that tokens are drawn behind: the last ones of each span."""
    rows = [range(int(end) - len(span.drawn), int(end)) for span, end in zip(spans, starts[1:], strict=True)]
    return np.array([row for each in rows for row in each], np.int32)


def _scored(spans: Sequence[Span], starts: Array) -> dict[str, Array]:
    """The rows whose next token is scored, and these tokens; a rank that draws nothing is not told them."""
    rows = [
        range(int(end) - len(span.draws), int(end) - len(span.draws) + len(span.scores))
        for span, end in zip(spans, starts[1:], strict=True)
    ]
    given = [draw.given or 0 for span in spans for draw in span.scores]
    return {
        "scored_rows": np.array([row for each in rows for row in each], np.int32),
        "given": np.array(given, np.int32),
    }


def _tiles(spans: Sequence[Span], starts: Array, places: list[int], queries_per_tile: int, fewest: int) -> Array:
    """[first row, number of rows, position of the first row, slot] of each query tile, longest context first."""
    tiles = [
        (int(start) + offset, min(queries_per_tile, len(span.token_ids) - offset), span.first + offset, slot)
        for span, start, slot in zip(spans, starts[:-1], places, strict=True)
        if len(span.token_ids) >= fewest
        for offset in range(0, len(span.token_ids), queries_per_tile)
    ]
    tiles.sort(key=lambda tile: -tile[2])
    return np.array(tiles, np.int32).reshape(-1, 4)

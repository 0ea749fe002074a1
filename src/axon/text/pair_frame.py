"""Where a tokenizer puts the ids of a pair's two texts between its special tokens. Knows no text.

The library cuts an encoding into pieces that it keeps, and pairs each piece of one text with each of the other: of long
texts that is more memory than a machine has. So ids are put together here, as a short pair shows.
"""

from collections.abc import Sequence
from itertools import chain, groupby
from typing import NamedTuple

from tokenizers import Encoding, Tokenizer

from axon.text.pair_lengths import pair_lengths


class _Piece(NamedTuple):
    text: int | None
    """0 for the first text, 1 for the second, None for special tokens."""
    type_id: int
    special_ids: Sequence[int] = ()


class PairFrame:
    """The special tokens around and between two texts."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        sample = _sample(tokenizer)
        both, unseen = tokenizer.post_process(sample, sample), 2 * len(sample.ids)
        texts: list[int | None] = []
        for is_special in both.special_tokens_mask:
            texts.append(None if is_special else int(unseen <= len(sample.ids)))
            unseen -= not is_special
        found = groupby(zip(texts, both.type_ids, both.ids, strict=True), key=lambda each: each[:2])
        self._pieces = [
            _Piece(text, type_id, [token_id for *_, token_id in run] if text is None else ())
            for (text, type_id), run in found
        ]
        self._num_special = sum(len(piece.special_ids) for piece in self._pieces)

    def lengths(self, first: int, second: int, limit: int) -> tuple[int, int]:
        """The tokens that each text keeps so that both have ``limit`` together with the special tokens."""
        return pair_lengths(first, second, limit - self._num_special)

    def filled(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], int]:
        """The ids of a pair, and the index from which on they are of the second type, 0 if none are."""
        ids: list[int] = []
        second_start = 0
        for piece in self._pieces:
            own = piece.special_ids if piece.text is None else (first, second)[piece.text]
            if own and piece.type_id == 1 and not second_start:
                second_start = len(ids)
            ids += own
        return ids, second_start


def _sample(tokenizer: Tokenizer) -> Encoding:
    """Any text with tokens, encoded; every vocabulary has one."""
    for text in chain(("a",), tokenizer.get_vocab()):
        found = tokenizer.encode(text, add_special_tokens=False)
        if found.ids:
            return found
    return tokenizer.encode("", add_special_tokens=False)

"""What is banned is forbidden unless nothing else is allowed, in every row by itself."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.grammar.mask import forbid

NUM_WORDS = 70
tokens = st.sampled_from([0, 1, 31, 32, 63, 64 * 32 - 1, 64 * 32, NUM_WORDS * 32 - 1])
rows = st.lists(st.tuples(st.sets(tokens), st.sets(tokens | st.just(NUM_WORDS * 32 + 5))), min_size=1, max_size=5)


def words_of(ids: set[int]) -> list[int]:
    words = [0] * NUM_WORDS
    for id in ids:
        words[id // 32] |= 1 << id % 32
    return words


@given(rows)
def test_a_row_loses_what_is_banned_or_keeps_all_if_it_allows_nothing_else(
    cases: list[tuple[set[int], set[int]]],
) -> None:
    masks = np.array([words_of(allowed) for allowed, _ in cases], np.uint32)
    allows = forbid(masks, [banned for _, banned in cases])
    left = [allowed - banned or allowed for allowed, banned in cases]
    assert masks.tolist() == [words_of(ids) for ids in left]
    assert allows == [bool(ids) for ids in left]

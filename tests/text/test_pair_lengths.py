"""A pair of texts is cut token by token from the longer one."""

from hypothesis import given
from hypothesis import strategies as st

from axon.text.pair_lengths import pair_lengths

count = st.integers(0, 60)


@given(count, count, st.integers(-2, 120))
def test_tokens_go_one_by_one_from_the_text_that_is_longer(first: int, second: int, limit: int) -> None:
    left, right = first, second
    while left + right > max(0, limit):
        if left > right or (left == right and first <= second):
            left -= 1
        else:
            right -= 1
    assert pair_lengths(first, second, limit) == (left, right)

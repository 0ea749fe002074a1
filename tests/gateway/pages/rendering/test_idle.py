"""Processes without work end after a while, and no earlier."""

from hypothesis import given
from hypothesis import strategies as st

from axon.gateway.pages.rendering.idle import idle

times = st.integers(0, 1000).map(float)


@given(since=st.dictionaries(st.integers(0, 5), times), now=times, most_s=st.integers(1, 500).map(float))
def test_each_is_due_now_or_by_the_time_that_is_told(since: dict[int, float], now: float, most_s: float) -> None:
    due, left_s = idle(since, now, most_s)
    assert due == [each for each in since if now - since[each] >= most_s]
    others = {each: at for each, at in since.items() if each not in due}
    assert (left_s is None) == (not others)
    if left_s is not None:
        assert left_s > 0
        assert idle(others, now + left_s, most_s)[0], "at the time that is told one is due"
        assert not idle(others, now + left_s - 0.5, most_s)[0], "and none before"

"""Inputs one below the other."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from axon.engine.encoder.packing import by_length, groups_of, put_back, spans_of


@given(st.lists(st.integers(1, 4), max_size=12))
def test_spans_and_groups_cover_every_row_once_and_in_order(lengths: list[int]) -> None:
    rows = [row for start, stop in spans_of(lengths) for row in range(start, stop)]
    assert rows == list(range(sum(lengths)))
    groups = groups_of(lengths)
    again = [length for group in groups for length in [group.length] * group.num_inputs]
    assert again == lengths
    assert [group.first_row for group in groups] == [
        sum(each.num_inputs * each.length for each in groups[:index]) for index in range(len(groups))
    ]
    assert all(left.length != right.length for left, right in pairwise(groups))


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=12))
def test_inputs_go_shortest_first_and_come_back_to_their_places(batch: list[list[int]]) -> None:
    places = by_length(batch)
    taken = [batch[place] for place in places]
    assert taken == sorted(batch, key=len)
    assert put_back(places, taken) == batch

"""Frames come out whole, however their bytes were cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.runtime.framing import MAX_FRAME_BYTES, BadFrame, Framer, framed


@given(st.lists(st.binary(max_size=20), max_size=6), st.lists(st.integers(0, 150), max_size=8))
def test_frames_cut_anywhere_come_out_whole_and_in_order(bodies: list[bytes], places: list[int]) -> None:
    data, framer, found = b"".join(map(framed, bodies)), Framer(), list[bytes]()
    edges = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    for start, end in pairwise(edges):
        found += framer.feed(data[start:end])
    assert found == bodies


def test_a_frame_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadFrame):
        Framer().feed((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))

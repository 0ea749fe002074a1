"""The filling of slots: learned from throughput and used slots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.scaling.filling import Filling


@given(st.floats(0.15, 2.0), st.floats(0.5, 0.95))
def test_the_filling_of_slots_is_learned(ratio: float, aim: float) -> None:
    filling = Filling()
    for step in range(400):
        share = 0.5 + 0.4 * (step % 10) / 10
        filling = filling.learn(share, ratio * share / (1 - share + ratio * share))
    share = filling.throughput(aim)
    assert ratio * share / (1 - share + ratio * share) == pytest.approx(aim, abs=0.05)

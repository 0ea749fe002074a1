"""Work in seconds of a replica."""

import pytest

from axon.domain.scaling.work import Speed, Work


def test_work_is_told_in_seconds_of_a_replica() -> None:
    work = Work(prompt=20_000, answer=5_000)
    assert Speed(prefill=40_000, decode=10_000).seconds(work) == pytest.approx(1.0)
    assert Speed(busy=25_000).seconds(work) == pytest.approx(1.0)
    assert Speed(prefill=40_000).seconds(work) is None

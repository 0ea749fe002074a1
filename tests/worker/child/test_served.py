"""What a worker tells of its service: sums that only grow, and latencies of the last minute."""

import random

import pytest

from axon.domain.presence import Service
from axon.worker.child.served import Served


def test_tokens_and_jobs_are_summed() -> None:
    served = Served()
    served.token("acme", prompt=10, is_first=True)
    served.token("acme", prompt=0, is_first=False)
    served.token("acme", prompt=7, is_first=True)
    assert served.told(0.0) == Service(jobs=2, prompt_tokens=17, answer_tokens=3, remaining_tokens=0.0)


def test_latencies_are_those_of_the_last_minute() -> None:
    served = Served()
    served.began(0.0, 9.0)
    for second in range(1, 100):
        served.began(10.0, second / 100)
    assert served.told(30.0).ttft_s == 0.95
    assert served.told(65.0).ttft_s == 0.94
    assert served.told(71.0).ttft_s is None


def test_a_pause_is_no_latency_of_a_step() -> None:
    served = Served()
    for now in (0.0, 0.02, 30.0, 30.04):
        served.step(now, used=1, free=3)
    told = served.told(30.1)
    assert (told.itl_s, told.kv_use) == (0.02, 0.25)


def test_what_is_kept_is_bounded() -> None:
    served = Served()
    for number in range(5000):
        served.began(1.0, float(number >= 4500))
    assert served.told(1.0).ttft_s == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_the_95th_percentile_is_that_of_the_sorted_values_whatever_comes_and_goes(seed: int) -> None:
    numbers, served, kept, now = random.Random(seed), Served(), list[tuple[float, float]](), 0.0
    for _ in range(1_500):
        now += numbers.choice((0.0, 0.05, 3.0))
        value = numbers.choice((0.25, 0.5, numbers.random()))  # equal ones among them
        served.began(now, value)
        kept = [each for each in [*kept, (now, value)][-512:] if now - each[0] <= 60]
        ordered = sorted(value for _, value in kept)
        assert served.told(now).ttft_s == round(ordered[int(0.95 * (len(ordered) - 1))], 4)

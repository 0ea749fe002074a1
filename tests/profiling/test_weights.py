"""Functions are ranked by the time in themselves."""

from axon.profiling.weights import Weight, heaviest, rate_of
from tests.profiling.builders import IDLE, RUN, SPIN, cpu_profile


def test_the_function_that_took_most_processor_time_comes_first_and_waiting_is_left_out() -> None:
    assert heaviest(cpu_profile(), Weight.CPU, 10) == [(SPIN, 3.0, 3.0), (RUN, 0.5, 3.5)]
    assert heaviest(cpu_profile(), Weight.CPU, 1) == [(SPIN, 3.0, 3.0)]


def test_by_the_clock_a_sample_stands_for_the_time_between_two() -> None:
    assert rate_of(cpu_profile()) == 100.0
    assert heaviest(cpu_profile(), Weight.WALL, 10) == [(IDLE, 4.0, 4.0), (SPIN, 3.0, 3.0), (RUN, 1.0, 4.0)]

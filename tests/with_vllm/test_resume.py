"""Streams of vLLM's tokens that break off are picked up where they broke, as any engine's."""

from tests.journeys.test_resume import (
    test_a_client_that_comes_back_gets_exactly_the_rest,
    test_a_place_past_the_end_of_a_finished_stream_is_refused,
    test_a_repeated_request_with_a_place_past_the_end_is_refused,
    test_a_stream_cut_many_times_loses_and_repeats_nothing,
)

__all__ = [
    "test_a_client_that_comes_back_gets_exactly_the_rest",
    "test_a_place_past_the_end_of_a_finished_stream_is_refused",
    "test_a_repeated_request_with_a_place_past_the_end_is_refused",
    "test_a_stream_cut_many_times_loses_and_repeats_nothing",
]

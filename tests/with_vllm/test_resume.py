"""Streams of vLLM's tokens that break off are picked up where they broke, as any engine's."""

from tests.journeys.test_resume import (
    test_a_client_that_comes_back_gets_exactly_the_rest,
    test_a_finished_stream_is_read_again_from_any_seq,
    test_a_foreign_stream_is_answered_like_an_unknown_one,
    test_a_place_past_the_end_of_a_finished_stream_is_refused,
    test_a_reader_of_event_ids_comes_back_with_the_last_one,
    test_a_repeated_request_with_a_place_past_the_end_is_refused,
    test_a_stream_cut_many_times_loses_and_repeats_nothing,
    test_only_the_last_frame_says_that_it_is_the_last,
    test_the_seq_a_client_sends_must_be_a_number,
)
from tests.journeys.test_resumed_responses import (
    test_a_finished_stream_is_read_again_from_any_event,
    test_a_number_past_the_last_event_of_a_complete_response_is_a_mistake,
    test_a_number_that_a_response_turns_out_not_to_reach_ends_with_an_error,
    test_a_stream_cut_many_times_is_the_same_stream,
    test_the_number_a_client_sends_must_be_one,
    test_the_official_client_resumes,
)

__all__ = [
    "test_a_client_that_comes_back_gets_exactly_the_rest",
    "test_a_finished_stream_is_read_again_from_any_event",
    "test_a_finished_stream_is_read_again_from_any_seq",
    "test_a_foreign_stream_is_answered_like_an_unknown_one",
    "test_a_number_past_the_last_event_of_a_complete_response_is_a_mistake",
    "test_a_number_that_a_response_turns_out_not_to_reach_ends_with_an_error",
    "test_a_place_past_the_end_of_a_finished_stream_is_refused",
    "test_a_reader_of_event_ids_comes_back_with_the_last_one",
    "test_a_repeated_request_with_a_place_past_the_end_is_refused",
    "test_a_stream_cut_many_times_is_the_same_stream",
    "test_a_stream_cut_many_times_loses_and_repeats_nothing",
    "test_only_the_last_frame_says_that_it_is_the_last",
    "test_the_number_a_client_sends_must_be_one",
    "test_the_official_client_resumes",
    "test_the_seq_a_client_sends_must_be_a_number",
]

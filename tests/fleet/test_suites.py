"""The suites of resuming and of other people's clients, on a fleet: the same tests, another server.

One server, in the journeys, keeps its things on the same services; a short run has a tenth of them here.
"""

from pathlib import Path

import pytest

from tests.conformance.running import runs
from tests.conformance.test_fuzz import test_no_request_makes_the_server_fail  # noqa: F401
from tests.conformance.test_openai import (  # noqa: F401
    test_a_raw_answer_has_the_headers_that_clients_read,
    test_a_streaming_answer_is_read_line_by_line,
    test_an_asynchronous_client_asks_and_streams_at_once,
    test_errors_have_the_clients_types_and_codes,
    test_the_chat_stream_helper_is_satisfied,
)
from tests.conformance.test_programs import CHATS, LOAD_CASES
from tests.journeys.server import Server
from tests.journeys.test_client import (  # noqa: F401
    test_a_stream_that_was_picked_up_in_its_middle_is_resumed_from_there,
    test_an_asynchronous_client_resumes_as_well,
    test_many_streams_over_a_network_that_cuts_say_what_was_said,
)
from tests.journeys.test_resume import (  # noqa: F401
    test_a_client_that_comes_back_gets_exactly_the_rest,
    test_a_finished_stream_is_read_again_from_any_seq,
    test_a_foreign_stream_is_answered_like_an_unknown_one,
    test_a_reader_of_event_ids_comes_back_with_the_last_one,
    test_a_stream_cut_many_times_loses_and_repeats_nothing,
    test_only_the_last_frame_says_that_it_is_the_last,
)
from tests.journeys.test_resumed_responses import (  # noqa: F401
    test_a_finished_stream_is_read_again_from_any_event,
    test_a_stream_cut_many_times_is_the_same_stream,
    test_the_official_client_resumes,
)
from tests.journeys.test_socket import (  # noqa: F401
    test_a_stream_is_resumed_at_any_event,
    test_the_events_are_those_of_the_stream_over_http,
    test_the_official_client_creates_responses_one_after_another,
)

pytestmark = pytest.mark.long("suites")


@pytest.mark.long("programs")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("command", [*((program,) for program in CHATS), *LOAD_CASES], ids=" ".join)
def test_a_program_runs_as_it_does_against_openai(echo: Server, tmp_path: Path, command: tuple[str, ...]) -> None:
    assert runs(echo, tmp_path, *command)

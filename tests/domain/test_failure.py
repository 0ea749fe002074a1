"""The codes of failed turns are stored: a code that changes is unknown to every release before it."""

from axon.domain.failure import Failure
from axon.domain.log.chunk import Chunk
from axon.domain.turn import Turn, TurnState, ended, opened
from axon.domain.wire import decode, encode
from tests.domain.strategies import make_job


def test_the_codes_are_those_that_stored_turns_have() -> None:
    assert {failure.name: failure.value for failure in Failure} == {
        "CONTEXT_TOO_LONG": "context_length_exceeded",
        "KV_SHARE_TOO_SMALL": "kv_share_exceeded",
        "PROMPT_LOGPROBS_UNSUPPORTED": "prompt_logprobs_unsupported",
        "ADAPTER_UNUSABLE": "adapter_unusable",
        "ADAPTER_UNAVAILABLE": "adapter_unavailable",
        "INVALID": "invalid_value",
        "ENGINE_CRASH": "worker_crash",
        "VERSION_GONE": "version_gone",
        "DEPLOYMENT_GONE": "deployment_gone",
        "RESTORED": "store_restored",
    }


def test_a_code_comes_back_from_the_store_as_a_text_that_is_equal_to_it() -> None:
    for failure in Failure:
        last = Chunk(first=1, epoch=1, terminal=TurnState.FAILED, code=failure)
        turn = ended(opened(make_job()), (last,), at=9.0)
        assert decode(Turn, encode(turn)).code == failure


def test_a_code_of_a_later_release_is_read_as_it_was_written() -> None:
    last = Chunk(first=1, epoch=1, terminal=TurnState.FAILED, code="of_a_later_release")
    assert decode(Turn, encode(ended(opened(make_job()), (last,), at=9.0))).code == "of_a_later_release"

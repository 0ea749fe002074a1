import pytest

from axon.domain.failure import Failure
from axon.domain.log.chunk import Chunk
from axon.domain.reply import ChatReply, CompletionReply, OtherReply, Reply, ResponseReply
from axon.domain.turn import TurnState
from axon.gateway.http.errors import status_of
from axon.gateway.openai.outcome import failure


def last(terminal: TurnState, code: str = "") -> Chunk:
    return Chunk(first=1, epoch=1, terminal=terminal, code=code, message="Why.")


@pytest.mark.parametrize("code", [Failure.CONTEXT_TOO_LONG, Failure.KV_SHARE_TOO_SMALL])
@pytest.mark.parametrize(
    ("reply", "param"),
    [(ChatReply(), "messages"), (CompletionReply(), "prompt"), (ResponseReply(), "input"), (OtherReply(), None)],
    ids=lambda each: type(each).__name__,
)
def test_a_prompt_that_does_not_fit_is_blamed_on_the_field_that_holds_it(
    code: Failure, reply: Reply, param: str | None
) -> None:
    error = failure(last(TurnState.FAILED, code), reply)
    assert error is not None
    assert (error.kind, error.code, error.message, error.param) == ("invalid", code, "Why.", param)


@pytest.mark.parametrize("code", [Failure.PROMPT_LOGPROBS_UNSUPPORTED, "unsupported_parameter"])
def test_log_probabilities_that_the_engine_cannot_compute_are_blamed_on_their_field(code: str) -> None:
    error = failure(last(TurnState.FAILED, code), CompletionReply())
    assert error is not None
    assert (error.kind, error.code, error.param) == ("invalid", "unsupported_parameter", "logprobs")


@pytest.mark.parametrize("code", [Failure.ENGINE_CRASH, Failure.VERSION_GONE, "a_code_of_a_later_release"])
def test_what_is_nobodys_input_is_the_servers_fault_and_blames_no_field(code: str) -> None:
    error = failure(last(TurnState.FAILED, code), CompletionReply())
    assert error is not None
    assert (error.kind, error.code, error.param) == ("internal", code, None)


@pytest.mark.parametrize(
    ("code", "status", "retryable"), [(Failure.ADAPTER_UNAVAILABLE, 503, True), (Failure.ADAPTER_UNUSABLE, 400, False)]
)
def test_an_adapter_that_cannot_be_had_now_may_be_asked_again_and_one_that_is_wrong_may_not(
    code: Failure, status: int, retryable: bool
) -> None:
    error = failure(last(TurnState.FAILED, code), ChatReply())
    assert error is not None
    assert (status_of(error), error.code, error.param, error.retryable) == (status, code, "model", retryable)


@pytest.mark.parametrize(("state", "kind"), [(TurnState.EXPIRED, "expired"), (TurnState.CANCELLED, "conflict")])
def test_a_turn_that_ran_out_of_time_or_was_stopped_says_so(state: TurnState, kind: str) -> None:
    error = failure(last(state), ChatReply())
    assert error is not None
    assert error.kind == kind


@pytest.mark.parametrize("terminal", ["", TurnState.COMPLETED])
def test_an_answer_is_no_failure(terminal: str) -> None:
    assert failure(Chunk(first=1, epoch=1, terminal=terminal), ChatReply()) is None

"""The response object: a function of the turn as it stands, in OpenAI's words for every state."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from openai.types.responses import Response

from axon.domain.billing.ledger import Ledger
from axon.domain.billing.usage import Usage
from axon.domain.failure import Failure
from axon.domain.log.chunk import Chunk, Details, End, Token
from axon.domain.reply import ResponseReply
from axon.domain.turn import Turn, TurnState, ended, opened
from axon.gateway.responses.body import likelihoods, output, queued, response_body, status_of, usage_body
from tests.contracts.builders import make_job
from tests.domain.strategies import turns

JOB = make_job("resp_1", session="resp_1", retain=True, reply=ResponseReply(model="small", metadata={"a": "b"}))


def turn(
    state: str = "completed", *tokens: Token, reason: str = "stop", code: str = "", message: str = "", **job: Any
) -> Turn:
    ends = (End(0, reason),) if state == "completed" else ()
    last = Chunk(first=1, epoch=1, tokens=tokens, ends=ends, terminal=state, code=code, message=message)
    begun = opened(replace(JOB, **job))
    return begun if state == "opened" else ended(begun, (last,), at=200.0)


def said(text: str) -> Token:
    return Token(0, 1, text)


def thought(text: str) -> Token:
    return Token(0, 1, "", Details(reasoning=text))


@given(turns())
def test_whatever_a_turn_holds_openais_own_types_read_its_response(found: Turn) -> None:
    body = response_body(found)
    read = Response.model_validate(body)
    assert (read.id, read.status) == (found.job.id, status_of(found))
    assert (read.usage is not None) == found.state.terminal
    assert read.output_text == ("".join(token.text for token in found.tokens) if found.state.terminal else "")


def test_a_response_says_when_it_completed_by_what_its_stream_says() -> None:
    ledger = Ledger(attempts=2, queue_s=1.0, prefill_s=2.0, decode_s=30.5, replay_s=4.0)
    last = Chunk(first=1, epoch=1, tokens=(said("a"),), ends=(End(0, "stop"),), terminal="completed", ledger=ledger)
    begun = opened(replace(JOB, created=100.0))
    assert response_body(ended(begun, (last,), at=999.0))["completed_at"] == 137
    assert response_body(begun)["completed_at"] is None
    assert response_body(ended(begun, (replace(last, ends=(End(0, "length"),)),), at=999.0))["completed_at"] is None


def test_a_response_has_every_field_that_open_responses_requires() -> None:
    body = response_body(turn())
    assert (body["presence_penalty"], body["frequency_penalty"]) == (0.0, 0.0)
    assert "completed_at" in body


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (turn("opened"), "in_progress"),
        (turn("completed"), "completed"),
        (turn("completed", reason="length"), "incomplete"),
        (turn("cancelled"), "cancelled"),
        (turn("failed"), "failed"),
        (turn("expired"), "failed"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_each_state_has_openais_word(found: Turn, status: str) -> None:
    assert status_of(found) == response_body(found)["status"] == status


def test_a_status_that_is_given_goes_before_the_turns() -> None:
    assert response_body(turn("opened"), status="queued")["status"] == "queued"
    assert [queued(replace(JOB, background=background)) for background in (True, False)] == ["queued", "in_progress"]


class TestOutput:
    def test_an_answer_cut_off_by_its_length_says_so_in_all_three_places(self) -> None:
        body = response_body(turn("completed", said("a"), reason="length"))
        assert body["incomplete_details"] == {"reason": "max_output_tokens"}
        assert (body["status"], body["output"][0]["status"]) == ("incomplete", "incomplete")
        whole = response_body(turn("completed", said("a")))
        assert whole["incomplete_details"] is None
        assert whole["output"][0]["status"] == "completed"

    def test_a_turn_that_runs_shows_no_output_and_no_usage(self) -> None:
        running = replace(turn("opened"), tokens=(said("a"),), usage=Usage(output_tokens=1))
        body = response_body(running)
        assert (body["output"], body["usage"]) == ([], None)

    def test_a_completed_answer_of_no_words_is_still_a_message(self) -> None:
        assert [item["type"] for item in output(turn("completed"))] == ["message"]
        assert output(turn("failed")) == []

    def test_what_was_said_before_a_failure_is_shown_as_incomplete(self) -> None:
        [message] = output(turn("failed", said("a"), said("b")))
        assert (message["status"], message["content"][0]["text"]) == ("incomplete", "ab")

    def test_thinking_comes_first_and_is_over_when_the_answer_begins(self) -> None:
        thinking, message = output(turn("cancelled", thought("hm"), said("a")))
        assert (thinking["type"], thinking["id"], thinking["status"]) == ("reasoning", "rs_1", "completed")
        assert thinking["content"] == [{"type": "reasoning_text", "text": "hm"}]
        assert (message["type"], message["status"]) == ("message", "incomplete")
        [cut] = output(turn("cancelled", thought("hm")))
        assert (cut["type"], cut["status"]) == ("reasoning", "incomplete")

    def test_log_probabilities_are_of_the_answer_and_not_of_the_thinking(self) -> None:
        known: dict[str, Any] = {"data": b"a", "logprob": -1.0, "top": (), "offset": 0}
        scored, thinking = Token(0, 1, "a", Details(**known)), Token(0, 1, "", Details(reasoning="a", **known))
        assert likelihoods(thinking) == []
        [message] = [item for item in output(turn("completed", thinking, scored)) if item["type"] == "message"]
        assert [entry["token"] for entry in message["content"][0]["logprobs"]] == ["a"]


class TestError:
    @pytest.mark.parametrize("state", ["opened", "completed", "cancelled"])
    def test_only_a_failure_has_one(self, state: str) -> None:
        assert response_body(turn(state))["error"] is None

    @pytest.mark.parametrize(
        ("state", "code", "error"),
        [
            ("failed", Failure.CONTEXT_TOO_LONG, ("invalid_prompt", "context_length_exceeded", "input")),
            ("failed", Failure.ENGINE_CRASH, ("server_error", "worker_crash", None)),
            ("failed", "of_a_later_release", ("server_error", "of_a_later_release", None)),
            ("expired", "", ("server_error", "deadline_exceeded", None)),
        ],
    )
    def test_openais_code_stands_beside_our_own(self, state: str, code: str, error: tuple[str, ...]) -> None:
        found = response_body(turn(state, code=code, message="Why."))["error"]
        assert (found["code"], found["type"], found["param"]) == error
        assert found["message"] == "Why."


def test_a_conversation_is_named_and_a_chain_is_not() -> None:
    assert response_body(turn())["conversation"] is None
    assert response_body(turn(session="conv_1"))["conversation"] == {"id": "conv_1"}
    assert response_body(turn(previous="resp_0"))["previous_response_id"] == "resp_0"
    assert response_body(turn())["previous_response_id"] is None


def test_what_the_request_said_is_repeated() -> None:
    reply = ResponseReply(model="alias", instructions="Be brief.", user="u", metadata={"a": "b"}, truncation="auto")
    body = response_body(turn(reply=reply))
    assert {name: body[name] for name in ("model", "instructions", "user", "metadata", "truncation")} == {
        "model": "alias",
        "instructions": "Be brief.",
        "user": "u",
        "metadata": {"a": "b"},
        "truncation": "auto",
    }
    assert response_body(turn(reply=ResponseReply()))["model"] == JOB.deployment


def test_usage_is_told_in_the_words_of_responses() -> None:
    assert usage_body(Usage(prompt_tokens=5, cached_tokens=2, output_tokens=7, reasoning_tokens=3)) == {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": 12,
    }


def test_a_ledger_is_shown_to_who_asks_and_at_the_end_only() -> None:
    done = replace(turn(), ledger=Ledger(emitted=3))
    assert response_body(done, with_ledger=True)["axon"]["ledger"]["emitted_tokens"] == 3
    assert response_body(done)["axon"] == {"version": done.job.version}
    opened = turn("opened")
    assert response_body(opened, with_ledger=True)["axon"] == {"version": opened.job.version}


def test_every_state_was_thought_of() -> None:
    assert {status_of(replace(turn(), state=state)) for state in TurnState} == {
        "in_progress",
        "completed",
        "failed",
        "cancelled",
    }

"""Tool calls and their results in a chat: one result for each call, in the messages directly behind it."""

from typing import Any

import pytest

from axon.errors import InvalidInput
from axon.gateway.openai.requests import ChatRequest

ASKED = {"role": "user", "content": "Weather?"}


def called(*ids: str) -> dict[str, Any]:
    calls = [{"id": each, "type": "function", "function": {"name": "get", "arguments": "{}"}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "4"}


def chat(*messages: dict[str, Any]) -> ChatRequest:
    return ChatRequest.model_validate({"model": "m", "messages": [ASKED, *messages]})


def refusal(*messages: dict[str, Any]) -> tuple[str, str | None]:
    with pytest.raises(InvalidInput) as refused:
        chat(*messages).texts()
    return refused.value.message, refused.value.param


@pytest.mark.parametrize(
    "history",
    [
        [called("a", "b"), result("b"), result("a"), ASKED],
        [called("a"), result("a"), called("a"), result("a")],
        [{"role": "assistant", "content": "Hm.", "tool_calls": []}, ASKED],
    ],
    ids=["in any order", "ids of an earlier step", "no calls"],
)
def test_a_chat_in_which_every_call_has_its_result_is_taken(history: list[dict[str, Any]]) -> None:
    assert len(chat(*history).texts()) == 1 + len(history)


@pytest.mark.parametrize(
    ("history", "ids"),
    [
        ([called("a")], "a"),
        ([called("a", "b", "c"), result("b"), ASKED, result("a")], "a, c"),
        ([called("a"), called("b"), result("b")], "a"),
    ],
)
def test_a_call_without_a_result_directly_behind_it_is_refused(history: list[dict[str, Any]], ids: str) -> None:
    assert refusal(*history) == (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {ids}",
        "messages.1.tool_calls",
    )


@pytest.mark.parametrize(
    "history", [[result("a")], [called("a"), result("a"), ASKED, result("a")], [called("b"), result("b"), result("a")]]
)
def test_a_result_that_follows_no_such_call_is_refused(history: list[dict[str, Any]]) -> None:
    message, param = refusal(*history)
    assert message == "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
    assert param == f"messages.{len(history)}.tool_call_id"


def test_a_second_result_is_refused() -> None:
    assert refusal(called("a", "b"), result("a"), result("a"), result("b")) == (
        "Duplicate value for 'tool_call_id' of 'a', in messages[2] and messages[3].",
        "messages.3.tool_call_id",
    )


def test_long_ids_do_not_make_a_long_error() -> None:
    message, _ = refusal(called(*(f"{number}" * 1000 for number in range(128))))
    assert len(message) < 2000

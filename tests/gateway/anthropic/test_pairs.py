"""Tool calls and their results in a message's history: one result for each call, in the turn after it, before text."""

from typing import Any

import pytest

from axon.errors import InvalidInput
from axon.gateway.anthropic.content import InputMessage, messages_of

ASKED = {"role": "user", "content": "Weather?"}
TEXT = {"type": "text", "text": "Well?"}


def used(*ids: str) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": each, "name": "get", "input": {}} for each in ids]
    return {"role": "assistant", "content": [TEXT, *blocks]}


def results(*ids: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": each, "content": "4"} for each in ids]}


def refusal(*messages: dict[str, Any]) -> tuple[str, str | None]:
    with pytest.raises(InvalidInput) as refused:
        messages_of(None, [InputMessage.model_validate(each) for each in messages])
    return refused.value.message, refused.value.param


@pytest.mark.parametrize(
    "history",
    [
        [used("a", "b"), results("b", "a")],
        [used("a"), results("a"), used("b"), results("b"), {"role": "user", "content": "Well?"}],
        [used("a"), used("b"), results("a"), results("b")],
        [used("a"), {"role": "user", "content": [*results("a")["content"], TEXT]}, {"role": "user", "content": [TEXT]}],
        [used("a"), {"role": "system", "content": "Note."}, results("a"), {"role": "system", "content": "Note."}],
    ],
    ids=["in any order", "loop", "in several messages", "before text", "with system messages between"],
)
def test_a_history_in_which_every_call_has_its_result_is_taken(history: list[dict[str, Any]]) -> None:
    assert messages_of(None, [InputMessage.model_validate(each) for each in (ASKED, *history)])


@pytest.mark.parametrize(
    ("history", "ids"),
    [
        ([used("a"), {"role": "user", "content": "Well?"}], "a"),
        ([used("a", "b", "c"), results("b")], "a, c"),
        ([used("a"), ASKED, {"role": "assistant", "content": "Hm."}, results("a")], "a"),
        ([used("a"), {"role": "user", "content": "x"}, used("b"), results("b")], "a"),
        ([used("a"), {"role": "user", "content": [TEXT, *results("a")["content"]]}], "a"),
        ([used("a"), {"role": "user", "content": [TEXT]}, results("a")], "a"),
        ([used("a", "b"), results("a"), {"role": "user", "content": "x"}, results("b")], "b"),
    ],
)
def test_a_call_whose_result_does_not_begin_the_next_turn_is_refused(history: list[dict[str, Any]], ids: str) -> None:
    assert refusal(ASKED, *history) == (
        f"messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` "
        "block must have a corresponding `tool_result` block in the next message.",
        "messages.1",
    )


@pytest.mark.parametrize(
    ("history", "path"),
    [
        ([results("a")], "messages.1.content.0"),
        ([used("b"), results("b", "a")], "messages.2.content.1"),
        ([used("a"), results("a"), used("b"), results("a", "b")], "messages.4.content.0"),
    ],
)
def test_a_result_whose_call_is_not_in_the_turn_before_is_refused(history: list[dict[str, Any]], path: str) -> None:
    message, param = refusal(ASKED, *history)
    assert message.startswith(f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: a. Each")
    assert param == path


@pytest.mark.parametrize("history", [[results("a", "a")], [results("a"), results("a")]])
def test_a_second_result_is_refused(history: list[dict[str, Any]]) -> None:
    message, _ = refusal(ASKED, used("a"), *history)
    assert message.endswith("each tool_use must have a single result. Found multiple `tool_result` blocks with id: a")


def test_two_calls_may_not_have_one_id() -> None:
    assert refusal(used("a", "a"), results("a"))[0] == "messages.0.content.2.id: `tool_use` ids must be unique"


def test_long_ids_do_not_make_a_long_error() -> None:
    message, _ = refusal(used(*(f"{number}" * 1000 for number in range(1000))), ASKED)
    assert len(message) < 2000

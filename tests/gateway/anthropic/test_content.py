"""What clients send as messages, and the messages that the model's template gets."""

from typing import Any

import pytest

from axon.errors import InvalidInput, Unsupported
from axon.gateway.anthropic.content import InputMessage, TextBlock, messages_of


def rendered(*messages: dict[str, Any], system: Any = None) -> list[dict[str, Any]]:
    blocks = [TextBlock.model_validate(each) for each in system] if isinstance(system, list) else system
    return [dict(each) for each in messages_of(blocks, [InputMessage.model_validate(each) for each in messages])]


def test_text_and_blocks_of_text_are_the_same() -> None:
    whole = rendered({"role": "user", "content": "Hello"}, system="Be brief.")
    blocks = rendered(
        {"role": "user", "content": [{"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}]},
        system=[{"type": "text", "text": "Be brief."}],
    )
    assert whole == blocks == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]


def test_messages_of_one_role_in_a_row_become_one() -> None:
    found = rendered(
        {"role": "user", "content": "One"},
        {"role": "user", "content": [{"type": "text", "text": "Two"}, {"type": "text", "text": "Three"}]},
        {"role": "assistant", "content": "Four"},
    )
    assert [message["content"] for message in found] == ["One\n\nTwo\n\nThree", "Four"]


def test_a_system_message_in_the_middle_stays_there() -> None:
    found = rendered({"role": "user", "content": "One"}, {"role": "system", "content": "Now"}, system="First")
    assert [message["role"] for message in found] == ["system", "user", "system"]


def test_thinking_of_earlier_answers_is_for_the_template_to_use() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "x"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    answer = {"role": "assistant", "content": [thinking, hidden, {"type": "text", "text": "Hi"}]}
    [_, said, _] = rendered({"role": "user", "content": "a"}, answer, {"role": "user", "content": "b"})
    assert said == {"role": "assistant", "content": "Hi", "reasoning_content": "hm"}


USED = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"a": [1]}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1"}
CALL = {"id": "toolu_1", "type": "function", "function": {"name": "get", "arguments": {"a": [1]}}}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": "Sunny"}, "Sunny"),
        ({"content": [{"type": "text", "text": "Sunny"}, {"type": "text", "text": "Warm"}]}, "Sunny\n\nWarm"),
        ({}, ""),
        ({"content": "No such city", "is_error": True}, "Error: No such city"),
    ],
)
def test_calls_and_results_have_the_shape_that_templates_read(result: dict[str, Any], text: str) -> None:
    found = rendered(
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [{"type": "text", "text": "Wait."}, USED]},
        {"role": "user", "content": [{**RESULT, **result}, {"type": "text", "text": "Well?"}]},
    )
    assert found[1] == {"role": "assistant", "content": "Wait.", "tool_calls": [CALL]}
    assert found[2] == {"role": "tool", "content": text, "tool_call_id": "toolu_1", "name": "get"}
    assert found[3] == {"role": "user", "content": "Well?"}


def test_results_of_several_calls_stay_apart() -> None:
    found = rendered(
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": [USED, {**USED, "id": "toolu_2"}]},
        {"role": "user", "content": [RESULT, {**RESULT, "tool_use_id": "toolu_2"}]},
    )
    assert [message.get("tool_call_id") for message in found] == [None, None, "toolu_1", "toolu_2"]


def test_an_empty_answer_comes_back_as_nothing() -> None:
    [message] = rendered({"role": "user", "content": "a"}, {"role": "assistant", "content": []})
    assert message["content"] == "a"


@pytest.mark.parametrize(
    ("role", "block", "words"),
    [
        ("user", {**RESULT, "tool_use_id": "toolu_9"}, "unexpected `tool_use_id` found"),
        ("user", {"type": "tool_result"}, "tool_use_id: Field required"),
        ("user", {**RESULT, "content": [{"type": "image"}]}, "blocks of type 'image'"),
        ("user", USED, "`tool_use` blocks cannot be in user messages"),
        ("user", {"type": "thinking", "thinking": "x"}, "`thinking` blocks cannot be in user messages"),
        ("assistant", RESULT, "`tool_result` blocks cannot be in assistant messages"),
        ("assistant", {"type": "tool_use", "name": "get"}, "id: Field required"),
        ("assistant", {"type": "tool_use", "id": "toolu_1"}, "name: Field required"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_block_in_a_wrong_place_is_told_so(role: str, block: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        rendered(
            {"role": "assistant", "content": [USED]}, {"role": role, "content": [block, {"type": "text", "text": "a"}]}
        )


def test_input_that_is_nested_too_deeply_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(InvalidInput, match="nested"):
        rendered({"role": "assistant", "content": [{**USED, "input": deep}]})


def test_a_users_message_without_content_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"messages.0: content must be non-empty"):
        rendered({"role": "user", "content": []})


@pytest.mark.parametrize("kind", ["image", "document", "server_tool_use", "search_result", "container_upload"])
def test_any_other_block_is_refused_by_name(kind: str) -> None:
    with pytest.raises(Unsupported, match=f"messages.0.content.1: blocks of type '{kind}'"):
        rendered({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": kind, "source": {}}]})


def test_a_block_of_text_without_text_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"messages.0.content.0.text: Field required"):
        rendered({"role": "user", "content": [{"type": "text"}]})

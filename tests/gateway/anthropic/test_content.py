"""What clients send as messages, and the messages that the model's template gets."""

from typing import Any

import pytest

from axon.errors import InvalidInput, Unsupported
from axon.gateway.anthropic.content import InputMessage, TextBlock, messages_of


def rendered(*messages: dict[str, Any], system: Any = None) -> list[dict[str, Any]]:
    blocks = [TextBlock.model_validate(each) for each in system] if isinstance(system, list) else system
    return list(messages_of(blocks, [InputMessage.model_validate(each) for each in messages]))


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


def test_thinking_of_earlier_answers_is_not_given_to_the_model() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "x"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    answer = {"role": "assistant", "content": [thinking, hidden, {"type": "text", "text": "Hi"}]}
    [_, said, _] = rendered({"role": "user", "content": "a"}, answer, {"role": "user", "content": "b"})
    assert said == {"role": "assistant", "content": "Hi"}


@pytest.mark.parametrize("kind", ["image", "document", "server_tool_use", "search_result", "container_upload"])
def test_any_other_block_is_refused_by_name(kind: str) -> None:
    with pytest.raises(Unsupported, match=f"messages.0.content.1: blocks of type '{kind}'"):
        rendered({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": kind, "source": {}}]})


def test_a_block_of_text_without_text_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"messages.0.content.0.text: Field required"):
        rendered({"role": "user", "content": [{"type": "text"}]})

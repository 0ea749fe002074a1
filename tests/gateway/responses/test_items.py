"""Items on the wire: what a client sends comes back as it was said, and what cannot be told is refused by its place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.content.item import Item
from axon.errors import InvalidInput, Unsupported
from axon.gateway.responses.items import InputItem, check_results, item_body, items_of, messages_of

ROLES = ["user", "assistant", "system", "developer"]
messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(ROLES),
        "content": st.text(max_size=5)
        | st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["input_text", "output_text", "text"]), "text": st.text(max_size=5)}
            ),
            max_size=3,
        ),
    },
    optional={"type": st.just("message"), "status": st.sampled_from(["completed", "incomplete", "in_progress"])},
)


def read(*given: dict[str, Any]) -> tuple[Item, ...]:
    return items_of([InputItem.model_validate(each) for each in given], now=100.0)


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def refused(given: dict[str, Any]) -> InvalidInput:
    with pytest.raises(InvalidInput) as raised:
        read({"role": "user", "content": "fine"}, given)
    return raised.value


@given(st.lists(messages, max_size=5))
def test_every_message_becomes_an_item_with_its_role_and_text_and_an_id_of_ours(said: list[dict[str, Any]]) -> None:
    items = read(*said)
    assert [(item.role, item.text) for item in items] == [(each["role"], text_of(each["content"])) for each in said]
    assert all(item.id.startswith("msg_") for item in items)
    assert len({item.id for item in items}) == len(items)
    assert [item.status == "incomplete" for item in items] == [each.get("status") == "incomplete" for each in said]


@given(st.lists(messages, max_size=5))
def test_what_is_shown_can_be_sent_again_and_says_the_same(said: list[dict[str, Any]]) -> None:
    items = read(*said)
    again = read(*(item_body(item) for item in items))
    assert [(each.role, each.texts, each.status) for each in again] == [
        (each.role, each.texts, each.status) for each in items
    ]


def test_a_bare_text_is_what_the_user_says() -> None:
    [item] = items_of("hello", now=100.0)
    assert (item.role, item.texts, item.status, item.type) == ("user", ("hello",), "completed", "message")


def test_earlier_thinking_is_left_out_and_the_places_of_the_others_stay() -> None:
    thinking = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}
    assert [item.text for item in read({"role": "user", "content": "a"}, thinking)] == ["a"]
    with pytest.raises(InvalidInput) as raised:
        read(thinking, {"role": "user"})
    assert raised.value.param == "input.1.content"


@pytest.mark.parametrize(
    ("given", "kind", "param", "code"),
    [
        ({"type": "web_search_call"}, Unsupported, "input.1", "unsupported_parameter"),
        ({"type": "function_call"}, InvalidInput, "input.1.call_id", "missing_required_parameter"),
        (
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"},
            InvalidInput,
            "input.1.arguments",
            "invalid_value",
        ),
        (
            {"type": "function_call_output", "call_id": "c"},
            InvalidInput,
            "input.1.output",
            "missing_required_parameter",
        ),
        ({"content": "who?"}, InvalidInput, "input.1.role", "missing_required_parameter"),
        ({"role": "user"}, InvalidInput, "input.1.content", "invalid_type"),
        (
            {"role": "user", "content": [{"type": "input_image"}]},
            Unsupported,
            "input.1.content",
            "unsupported_parameter",
        ),
        (
            {"role": "user", "content": [{"type": "input_text"}]},
            InvalidInput,
            "input.1.content",
            "missing_required_parameter",
        ),
    ],
)
def test_what_cannot_be_told_is_refused_by_its_place(
    given: dict[str, Any], kind: type[InvalidInput], param: str, code: str
) -> None:
    error = refused(given)
    assert (type(error), error.param, error.code) == (kind, param, code)


def test_the_place_is_told_in_the_words_of_the_field_that_holds_the_items() -> None:
    with pytest.raises(InvalidInput) as raised:
        items_of([InputItem(role="user")], now=100.0, param="items")
    assert raised.value.param == "items.0.content"


class TestMessages:
    ITEMS = (
        Item(id="msg_1", role="developer", texts=("Rule.",)),
        Item(id="msg_2", role="user", texts=("a", "b")),
        Item(id="msg_3", role="assistant", texts=("c",)),
    )
    SAID = (
        {"role": "system", "content": "Rule."},
        {"role": "user", "content": "ab"},
        {"role": "assistant", "content": "c"},
    )

    def test_the_template_is_told_roles_that_it_knows(self) -> None:
        assert messages_of(None, self.ITEMS) == list(self.SAID)

    def test_instructions_come_first_as_the_systems_word(self) -> None:
        assert messages_of("Be brief.", self.ITEMS) == [{"role": "system", "content": "Be brief."}, *self.SAID]
        assert messages_of("", self.ITEMS) == list(self.SAID)


def test_only_what_the_model_said_is_shown_as_output() -> None:
    bodies = [item_body(Item(id="msg_1", role=role, texts=("a",))) for role in ROLES]
    assert [body["content"][0]["type"] for body in bodies] == ["input_text", "output_text", "input_text", "input_text"]
    assert bodies[1]["content"] == [{"type": "output_text", "text": "a", "annotations": [], "logprobs": []}]


def test_calls_belong_to_the_message_before_them_and_results_know_their_function() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'}
    other = {**call, "call_id": "c2", "name": "g", "arguments": ""}
    result = {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "done"}]}
    said = {"role": "assistant", "content": "I look."}
    items = read({"role": "user", "content": "go"}, said, call, other, result, {**result, "call_id": "c2"}, call)
    check_results((*items, *read(result)))
    assert messages_of("S", items) == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
                {"id": "c2", "type": "function", "function": {"name": "g", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": "done", "tool_call_id": "c1", "name": "f"},
        {"role": "tool", "content": "done", "tool_call_id": "c2", "name": "g"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}],
        },
    ]
    assert [(each.type, each.call_id, each.text) for each in read(*map(item_body, items))] == [
        (each.type, each.call_id, each.text) for each in items
    ]


def test_a_result_without_its_call_is_refused() -> None:
    items = read({"type": "function_call_output", "call_id": "c9", "output": "42"})
    with pytest.raises(InvalidInput, match="No tool call found for function call output with call_id c9"):
        check_results(items)


CALLED = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "42"}


def test_a_second_result_of_one_call_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Duplicate function call output with call_id c1"):
        check_results(read(CALLED, RESULT, {"role": "user", "content": "and"}, RESULT))


def test_a_call_without_a_result_is_refused_unless_it_was_cut_off() -> None:
    with pytest.raises(InvalidInput, match="No tool output found for function call c1"):
        check_results(read(CALLED, {"role": "user", "content": "never mind"}))
    check_results(read({**CALLED, "status": "incomplete", "arguments": '{"a'}, {"role": "user", "content": "go on"}))
    check_results(read(CALLED, {"role": "user", "content": "meanwhile"}, RESULT))

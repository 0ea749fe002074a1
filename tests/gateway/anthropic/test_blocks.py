"""An answer's tokens as content blocks."""

import json
from typing import Any

import msgspec
import pytest

from axon.domain.content.tool_call import CallPiece
from axon.domain.log.chunk import Chunk, Details, End, Token
from axon.gateway.anthropic.blocks import block_body, content_of, input_of, stop_of
from axon.gateway.anthropic.message import message_body
from tests.contracts.builders import make_job


def call(index: int, arguments: str, name: str = "") -> Token:
    return Token(0, 1, "", Details(calls=(CallPiece(index, name, arguments),)))


def thought(text: str, said: str = "") -> Token:
    return Token(0, 1, said, Details(reasoning=text))


def bodies(*tokens: Token) -> list[dict[str, Any]]:
    return [block_body(block, "msg_1") for block in content_of(tokens)]


def test_an_answer_without_text_has_no_block() -> None:
    assert bodies() == bodies(Token(0, 1, "")) == []


def test_text_is_one_block() -> None:
    assert bodies(Token(0, 1, "He"), Token(0, 2, ""), Token(0, 3, "llo")) == [{"type": "text", "text": "Hello"}]


def test_an_answer_of_white_space_alone_is_kept() -> None:
    assert bodies(Token(0, 1, "\n"), Token(0, 2, " ")) == [{"type": "text", "text": "\n "}]


def test_a_token_that_ends_the_thinking_may_begin_the_text() -> None:
    [thinking, text] = bodies(thought("hm"), thought(" so", "The"))
    assert (thinking["type"], thinking["thinking"]) == ("thinking", "hm so")
    assert thinking["signature"]
    assert text == {"type": "text", "text": "The"}


def test_hidden_thinking_keeps_its_signature() -> None:
    [block] = content_of([thought("hm")])
    shown, hidden = block_body(block, "msg_1"), block_body(block, "msg_1", hides_thinking=True)
    assert hidden == {**shown, "thinking": ""}


def test_every_call_is_a_block_with_an_id_of_its_own_and_white_space_between_is_none() -> None:
    found = bodies(
        Token(0, 1, "Wait."), call(0, '{"a":', "get"), call(0, " 1}"), Token(0, 1, "\n"), call(1, "{}", "put")
    )
    assert [block["type"] for block in found] == ["text", "tool_use", "tool_use"]
    assert [(block["name"], block["input"]) for block in found[1:]] == [("get", {"a": 1}), ("put", {})]
    assert found[1]["id"] != found[2]["id"]
    assert found[1]["id"].startswith("toolu_")


def test_white_space_before_text_belongs_to_it() -> None:
    found = bodies(call(0, "{}", "get"), Token(0, 1, "\n"), Token(0, 1, "Then"))
    assert found[1] == {"type": "text", "text": "\nThen"}


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ('{"city": "Bonn"}', {"city": "Bonn"}),
        ("", {}),
        ('{"city": "Bonn", "un', {"city": "Bonn"}),
        ('{"city": ["a", "b', {"city": ["a"]}),
        ("nonsense", {"INVALID_JSON": "nonsense"}),
    ],
)
def test_a_tools_input_is_an_object_also_when_it_was_cut_off(arguments: str, read: dict[str, Any]) -> None:
    assert input_of(arguments, is_cut_off=True) == read


NO_JSON = [
    "[1, 2]",
    "nonsense",
    '{"city": Bonn}',
    '{"text": "two\nlines"}',
    '{"a": 1,}',
    '{"a": NaN}',
    '{"a": "\\ud800"}',
    '{"a": "half',
    '{"a": ' + "[" * 300 + "]" * 300 + "}",
    '{"a": ' + "9" * 5000 + "}",
]


@pytest.mark.parametrize("arguments", NO_JSON, ids=lambda each: each[:16])
def test_arguments_that_are_no_json_object_are_returned_as_their_text(arguments: str) -> None:
    tokens = (call(0, arguments[:3], "get"), call(0, arguments[3:]))
    chunk = Chunk(first=1, epoch=1, tokens=tokens, ends=(End(0, "tool_calls", 2),), terminal="completed")
    whole = message_body(make_job("msg_1"), [chunk])
    assert whole["content"][0]["input"] == {"INVALID_JSON": arguments}
    assert json.loads(msgspec.json.encode(whole)) == whole


def test_only_the_last_block_of_an_answer_that_was_cut_off_is_read_as_far_as_it_goes() -> None:
    tokens = (call(0, '{"a": 1', "get"), call(1, '{"a": 1, "b', "get"))
    chunk = Chunk(first=1, epoch=1, tokens=tokens, ends=(End(0, "length", 2),), terminal="completed")
    whole = message_body(make_job("msg_1"), [chunk])
    assert [block["input"] for block in whole["content"]] == [{"INVALID_JSON": '{"a": 1'}, {"a": 1}]


@pytest.mark.parametrize(
    ("reason", "matched", "told"),
    [
        ("stop", "", ("end_turn", None)),
        ("stop", "END", ("stop_sequence", "END")),
        ("length", "", ("max_tokens", None)),
        ("tool_calls", "", ("tool_use", None)),
        ("content_filter", "", ("refusal", None)),
    ],
)
def test_an_end_has_anthropics_reason(reason: str, matched: str, told: tuple[str, str | None]) -> None:
    last = Token(0, 2, "", Details(stop=matched) if matched else None)
    chunks = [
        Chunk(first=1, epoch=1, tokens=(Token(0, 1, "a"), last), ends=(End(0, reason, 2),)),
        Chunk(first=3, epoch=1, terminal="completed"),
    ]
    assert stop_of(chunks) == told

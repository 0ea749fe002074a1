"""The two shapes of a choice: what a stream's pieces add up to is what the whole answer says."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.content.tool_call import CallPiece, call_id
from axon.domain.log.chunk import Details, Ranked, ScoredToken, Token
from axon.domain.reply import ChatReply, CompletionReply, OtherReply, ResponseReply
from axon.gateway.openai.shape import ChatShape, CompletionShape, Shape, shape_of
from tests.contracts.builders import make_job


def said(text: str, *, thinking: str = "", logprob: float | None = None) -> Token:
    known: dict[str, Any] = {"data": text.encode(), "logprob": logprob, "top": (), "offset": 0} if logprob else {}
    return Token(0, 1, text, Details(reasoning=thinking, **known) if thinking or known else None)


tokens = st.lists(st.builds(said, st.text(max_size=3), thinking=st.text(max_size=3)), min_size=1, max_size=8)
cuts = st.lists(st.integers(1, 7), max_size=4)


def completion(**fields: Any) -> Shape:
    return shape_of(make_job(reply=CompletionReply(**fields)))


def deltas(shape: Shape, found: list[Token], places: list[int]) -> list[Any]:
    """The pieces of one choice that a stream cut there shows."""
    edges = sorted({0, len(found), *(place for place in places if place < len(found))})
    return [shape.delta(0, found[start:end], first=start == 0) for start, end in pairwise(edges)]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (ChatReply(), ChatShape),
        (CompletionReply(), CompletionShape),
        (ResponseReply(), ChatShape),
        (OtherReply(name="later"), ChatShape),
    ],
)
def test_a_completion_has_a_shape_of_its_own_and_everything_else_is_a_message(reply: Any, kind: type) -> None:
    assert isinstance(shape_of(make_job(reply=reply)), kind)


@given(tokens, cuts)
def test_the_pieces_of_a_chat_add_up_to_its_message(found: list[Token], places: list[int]) -> None:
    shape = ChatShape(make_job())
    pieces = deltas(shape, found, places)
    message = shape.whole(0, found)["message"]
    assert "".join(piece["content"] for piece in pieces) == message["content"]
    assert "".join(piece.get("reasoning_content", "") for piece in pieces) == message.get("reasoning_content", "")
    assert [piece.get("role") for piece in pieces] == ["assistant", *[None] * (len(pieces) - 1)]
    assert message["role"] == "assistant"


@given(tokens, cuts, st.text(max_size=4), st.booleans())
def test_the_pieces_of_a_completion_add_up_to_its_text_behind_the_echo(
    found: list[Token], places: list[int], echo: str, prompt_only: bool
) -> None:
    shape = completion(echo=(echo,), prompt_only=prompt_only)
    whole = shape.whole(0, found)["text"]
    assert "".join(deltas(shape, found, places)) == whole
    assert whole == echo + ("" if prompt_only else "".join(token.text for token in found))


def test_each_prompts_answers_begin_with_their_own_echo() -> None:
    job = make_job(reply=CompletionReply(echo=("one ", "two ")), choices=4, more_prompts=((1,),))
    shape = shape_of(job)
    assert [shape.delta(choice, [said("x")], first=True) for choice in range(4)] == ["one x", "one x", "two x", "two x"]
    assert [shape.delta(choice, [said("x")], first=False) for choice in range(4)] == ["x"] * 4


def test_a_choice_opens_with_a_frame_where_there_is_something_to_open_with() -> None:
    assert ChatShape(make_job()).opens()
    assert completion(echo=("a",)).opens()
    assert not completion().opens()


def test_only_what_a_reader_sees_is_worth_a_frame() -> None:
    silent, thinking, text = [said("")], [said("", thinking="hm")], [said("a")]
    assert [ChatShape(make_job()).speaks(each) for each in (silent, thinking, text)] == [False, True, True]
    assert [completion().speaks(each) for each in (silent, thinking, text)] == [False, False, True]
    assert not completion(echo=("a",), prompt_only=True).speaks(text)


def test_a_message_without_thinking_has_no_field_for_it() -> None:
    assert "reasoning_content" not in ChatShape(make_job()).whole(0, [said("a")])["message"]
    assert "reasoning_content" not in ChatShape(make_job()).delta(0, [said("a")], first=True)


def test_log_probabilities_that_only_chose_the_best_are_not_shown() -> None:
    scored = [said("a", logprob=-1.0)]
    assert completion().whole(0, scored)["logprobs"]["tokens"] == ["a"]
    assert completion(hides_logprobs=True).whole(0, scored)["logprobs"] is None
    assert ChatShape(make_job()).whole(0, scored)["logprobs"]["content"][0]["token"] == "a"


def test_the_place_of_a_token_counts_the_echoed_prompt() -> None:
    found = completion(echo=("four",)).logprobs(0, [said("a", logprob=-1.0)])
    assert found is not None
    assert found["text_offset"] == [4]


CALLER = make_job("chatcmpl-1", call_format="hermes")


def calling(*pieces: CallPiece, text: str = "") -> Token:
    return Token(0, 1, text, Details(calls=pieces))


def test_a_call_s_id_and_name_come_once_and_its_arguments_after_them() -> None:
    tokens = [
        calling(CallPiece(0, "f"), text="Well."),
        calling(CallPiece(0, "", '{"a"')),
        calling(CallPiece(0, "", ": 1}"), CallPiece(1, "g", "{}")),
    ]
    shape = ChatShape(CALLER)
    first, second, third = (shape.delta(0, [token], first=token is tokens[0]) for token in tokens)
    known = {"id": call_id("chatcmpl-1", 0, 0), "type": "function"}
    assert first == {
        "role": "assistant",
        "content": "Well.",
        "tool_calls": [{"index": 0, **known, "function": {"name": "f", "arguments": ""}}],
    }
    assert second == {"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]}
    assert [call["index"] for call in third["tool_calls"]] == [0, 1]
    message = shape.whole(0, tokens)["message"]
    assert message["tool_calls"][0] == {**known, "function": {"name": "f", "arguments": '{"a": 1}'}}
    assert message["content"] == "Well."


def test_an_answer_that_only_calls_has_null_content() -> None:
    shape = ChatShape(CALLER)
    assert shape.delta(0, [said("")], first=True) == {"role": "assistant", "content": None}
    assert shape.whole(0, [calling(CallPiece(0, "f", "{}"))])["message"]["content"] is None


def test_calls_of_two_chats_and_two_choices_have_ids_of_their_own() -> None:
    ids = {
        call_id(turn, choice, index) for turn in ("chatcmpl-1", "chatcmpl-2") for choice in (0, 1) for index in (0, 1)
    }
    assert len(ids) == 8


PROMPT = Details(prompt=(ScoredToken(b"a", None), ScoredToken(b"b", -2.0)), ranks=(Ranked(4),))
MAP = [None, {"98": {"logprob": -2.0, "rank": 4, "decoded_token": "b"}}]


def test_a_chat_tells_of_its_prompt_once_and_a_completion_in_every_choice() -> None:
    tokens = [Token(0, 1, "x", PROMPT)]
    chat = shape_of(make_job(prompt_ids=(97, 98), reply=ChatReply(prompt_logprobs=0)))
    assert chat.more(tokens) == {"prompt_logprobs": MAP}
    assert "prompt_logprobs" not in chat.whole(0, tokens)
    job = make_job(prompt_ids=(1, 2), more_prompts=((97, 98),), choices=2, reply=CompletionReply(prompt_logprobs=0))
    text = shape_of(job)
    assert text.more(tokens) == {}
    assert text.whole(1, tokens) == {"text": "x", "logprobs": None, "prompt_logprobs": MAP}


def test_nobody_who_did_not_ask_is_told_of_the_prompt() -> None:
    for reply in (ChatReply(), CompletionReply(), ResponseReply()):
        shape = shape_of(make_job(prompt_ids=(97, 98), reply=reply))
        assert shape.more([Token(0, 1, "x", PROMPT)]) == {}
        assert "prompt_logprobs" not in shape.whole(0, [Token(0, 1, "x", PROMPT)])

"""The parts of an answer: texts and calls in the order in which the tokens made them."""

from axon.domain.answer import parts_of
from axon.domain.content.tool_call import CallPiece
from axon.domain.log.chunk import Details, Token


def said(text: str) -> Token:
    return Token(0, 1, text)


def called(*pieces: CallPiece, text: str = "") -> Token:
    return Token(0, 2, text, Details(calls=pieces))


def test_texts_and_calls_come_in_their_order() -> None:
    first, second = CallPiece(0, "look", '{"a"'), CallPiece(1, "send", "{}")
    parts = parts_of(
        [said("I "), said(""), said("look."), called(first), called(CallPiece(0, "", ":1}"), second), said("!")]
    )
    assert [part.text for part in parts] == ["I look.", "", "", "!"]
    assert [part.call for part in parts] == [None, CallPiece(0, "look", '{"a":1}'), second, None]


def test_a_tokens_text_comes_before_its_calls() -> None:
    parts = parts_of([called(CallPiece(0, "look", "{}"), text="so: ")])
    assert [part.text for part in parts] == ["so: ", ""]


def test_tokens_that_complete_no_character_belong_to_the_text_around_them() -> None:
    tokens = [said(""), said("ü"), said("")]
    [part] = parts_of(tokens)
    assert part.tokens == tokens
    assert parts_of([said("")]) == []

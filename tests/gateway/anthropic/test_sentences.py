"""Anthropic's words, which its clients look for."""

import pytest

from axon.errors import AnswerTooLong, ContextTooLong, InvalidInput, PromptTooLong
from axon.gateway.anthropic.sentences import blaming


def test_a_prompt_that_is_too_long() -> None:
    with pytest.raises(ContextTooLong, match=r"^prompt is too long: 300 tokens > 200 maximum$"), blaming():
        raise PromptTooLong(max_model_len=200, num_tokens=300)


def test_an_answer_that_is_too_long() -> None:
    words = r"^input length and `max_tokens` exceed context limit: 150 \+ 100 > 200, decrease input length or `max_tok"
    with pytest.raises(ContextTooLong, match=words), blaming():
        raise AnswerTooLong(max_model_len=200, num_prompt=150, num_answer=100)


def test_any_other_error_blames_the_messages() -> None:
    with pytest.raises(InvalidInput) as caught, blaming():
        raise InvalidInput("No.")
    assert caught.value.param == "messages"

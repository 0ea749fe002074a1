import pytest

from axon.errors import AnswerTooLong, ContextTooLong, InvalidInput, PromptTooLong
from axon.gateway.openai.sentences import blaming


@pytest.mark.parametrize(("at_least", "said"), [(False, "resulted in 450 tokens"), (True, "in at least 450 tokens")])
def test_a_prompt_that_is_too_long_is_told_in_the_words_that_clients_search_for(at_least: bool, said: str) -> None:
    with pytest.raises(ContextTooLong) as told, blaming("input", "max_output_tokens"):
        raise PromptTooLong(max_model_len=400, num_tokens=450, at_least=at_least)
    assert told.value.message.startswith("This model's maximum context length is 400 tokens. However, your input")
    assert said in told.value.message
    assert (told.value.param, told.value.code) == ("input", "context_length_exceeded")


def test_an_error_that_names_its_field_is_told_of_that_field() -> None:
    error = PromptTooLong(max_model_len=400, num_tokens=450)
    error.param = "query"
    with pytest.raises(ContextTooLong, match="your query resulted in") as told, blaming("documents", "documents"):
        raise error
    assert told.value.param == "query"


def test_an_answer_that_is_too_long_is_blamed_on_the_field_that_asked_for_it() -> None:
    with pytest.raises(ContextTooLong) as told, blaming("messages", "max_tokens"):
        raise AnswerTooLong(max_model_len=400, num_prompt=300, num_answer=200)
    assert "you requested 500 tokens (300 in the prompt, 200 in the completion)" in told.value.message
    assert told.value.param == "max_tokens"


@pytest.mark.parametrize(("given", "blamed"), [(None, "prompt"), ("logprobs", "logprobs")])
def test_what_blames_no_field_is_blamed_on_the_prompt(given: str | None, blamed: str) -> None:
    with pytest.raises(InvalidInput) as told, blaming("prompt", "max_tokens"):
        raise InvalidInput("Token ids must be below 7.", param=given)
    assert told.value.param == blamed

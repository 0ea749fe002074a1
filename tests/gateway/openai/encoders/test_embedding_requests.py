"""The body of an embeddings request and what is made of it."""

import json

import pytest

from axon.domain.model.embeds import Embeds
from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import parse
from axon.gateway.openai.encoders.embedding_requests import EmbeddingRequest
from axon.gateway.vector_directives import EMBEDDINGS

MODEL = Embeds(dimensions=8, prompts=(("query", "query: "), ("passage", "passage: ")), shorter=(2, 4))


def asked(**fields: object) -> EmbeddingRequest:
    body = json.dumps({"model": "m", **fields}).encode()
    return parse(EmbeddingRequest, body, EMBEDDINGS.refused, EMBEDDINGS.notes)


@pytest.mark.parametrize(
    ("given", "found"),
    [("a", ["a"]), (["a", "b"], ["a", "b"]), ([1, 2], [[1, 2]]), ([[1], [2, 3]], [[1], [2, 3]])],
)
def test_one_input_or_several_as_text_or_token_ids(given: object, found: object) -> None:
    assert asked(input=given).inputs() == found


@pytest.mark.parametrize("given", ["", [], [""], [[]], ["a"] * 2049])
def test_no_input_an_empty_one_and_too_many_are_refused(given: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        asked(input=given).check()
    assert caught.value.param == "input"


def test_a_size_that_the_model_lacks_is_refused_with_those_it_has() -> None:
    assert [asked(input="a", dimensions=size).size(MODEL) for size in (2, 4, 8)] == [2, 4, 8]
    assert asked(input="a").size(MODEL) == 8
    with pytest.raises(Unsupported, match="2, 4, 8"):
        asked(input="a", dimensions=3).size(MODEL)


def test_a_prompt_is_named_by_the_request_or_is_the_models_default() -> None:
    assert asked(input="a").texts(MODEL) == ["a"]
    assert asked(input=["a", "b"], prompt_name="passage").texts(MODEL) == ["passage: a", "passage: b"]
    assert asked(input=[[1, 2]], prompt_name="passage").texts(MODEL) == [[1, 2]]
    default = Embeds(dimensions=8, prompts=MODEL.prompts, default_prompt="query")
    assert asked(input="a").texts(default) == ["query: a"]
    with pytest.raises(InvalidInput, match="'query', 'passage'"):
        asked(input="a", prompt_name="document").texts(MODEL)


def test_a_field_of_another_server_is_refused_with_the_one_to_use() -> None:
    with pytest.raises(Unsupported, match="prompt_name"):
        asked(input="a", input_type="query")

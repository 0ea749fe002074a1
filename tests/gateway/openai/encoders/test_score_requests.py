"""The bodies of rerank and score requests and what is compared for them."""

import json

import pytest

from axon.domain.model.classes import Activation, Classes
from axon.domain.model.embeds import Embeds
from axon.errors import InvalidInput, Unsupported
from axon.gateway.http.body import parse
from axon.gateway.openai.encoders.score_requests import RerankRequest, ScoreRequest
from axon.gateway.vector_directives import RERANK, SCORE
from axon.sessions.embedding_inputs import Pair

PLAIN = Embeds(dimensions=8)
CROSS = Embeds(dimensions=1, classes=Classes(labels=("LABEL_0",), activation=Activation.SIGMOID))
PROMPTED = Embeds(dimensions=8, prompts=(("query", "query: "), ("passage", "passage: ")))


def rerank(**fields: object) -> RerankRequest:
    return parse(RerankRequest, json.dumps({"model": "m", **fields}).encode(), RERANK.refused, RERANK.notes)


def score(**fields: object) -> ScoreRequest:
    return parse(ScoreRequest, json.dumps({"model": "m", **fields}).encode(), SCORE.refused, SCORE.notes)


def test_query_and_documents_get_the_prompts_that_the_model_has_for_them() -> None:
    ask = rerank(query="q", documents=["a", "b"])
    assert ask.texts(PLAIN) == ["q", "a", "b"]
    assert ask.texts(PROMPTED) == ["query: q", "passage: a", "passage: b"]


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [("a", "b", [(0, 1)]), ("a", ["b", "c"], [(0, 1), (0, 2)]), (["a", "b"], ["c", "d"], [(0, 2), (1, 3)])],
)
def test_one_text_is_compared_with_all_and_several_with_their_own(
    first: object, second: object, pairs: list[tuple[int, int]]
) -> None:
    ask = score(text_1=first, text_2=second)
    ask.check()
    assert ask.pairs == pairs


def test_a_cross_encoder_reads_query_and_document_together() -> None:
    assert rerank(query="q", documents=["a", "b"]).texts(CROSS) == [Pair("q", "a"), Pair("q", "b")]
    assert score(text_1="a", text_2=["b", "c"]).texts(CROSS) == [Pair("a", "b"), Pair("a", "c")]
    assert score(text_1=["a", "b"], text_2=["c", "d"]).texts(CROSS) == [Pair("a", "c"), Pair("b", "d")]


def test_logits_are_for_cross_encoders_alone() -> None:
    ask = rerank(query="q", documents=["a"], use_activation=False)
    assert ask.texts(CROSS)
    with pytest.raises(Unsupported, match="has no activation") as caught:
        ask.texts(PLAIN)
    assert caught.value.param == "use_activation"


@pytest.mark.parametrize(
    ("ask", "param"),
    [
        (rerank(query="q", documents=[]), "documents"),
        (rerank(query="q", documents=["a", ""]), "documents"),
        (rerank(query="q", documents=["a"] * 2048), "documents"),
        (score(text_1=[], text_2="a"), "text_1"),
        (score(text_1="a", text_2=""), "text_2"),
        (score(text_1=["a", "b"], text_2=["a", "b", "c"]), "text_1"),
        (score(text_1="a", text_2=["a"] * 1025), "text_2"),
    ],
)
def test_empty_texts_too_many_and_those_without_a_partner_are_refused(
    ask: RerankRequest | ScoreRequest, param: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        ask.check()
    assert caught.value.param == param


def test_an_error_about_a_text_names_its_field() -> None:
    assert [rerank(query="q", documents=["a", "b"]).fields.of(place) for place in range(3)] == [
        "query",
        "documents",
        "documents",
    ]
    assert [score(text_1=["a", "b"], text_2=["c", "d"]).fields.of(place) for place in range(4)] == [
        "text_1",
        "text_1",
        "text_2",
        "text_2",
    ]

"""Classes of texts, and cross-encoders behind rerank and score, over the whole way."""

import math
import struct
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from axon.engine.config import EngineConfig
from axon.engine.encoder.echo import EchoEncoder
from axon.text.tokenizer import ByteTokenizer
from tests.journeys.conftest import PATIENT, Fresh, Settings
from tests.journeys.server import Server, running, wait_until

MANY: Settings = {"engine_kind": "echo", "engine_echo_classes": 3, "model_name": "moods"}
ONE: Settings = {"engine_kind": "echo", "engine_echo_classes": 1, "model_name": "cross"}


@pytest.fixture(scope="module")
def moods(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a classification model that needs no weights."""
    with running(tmp_path_factory.mktemp("moods") / "data", **MANY, **PATIENT, **place()) as server:
        yield server


@pytest.fixture(scope="module")
def cross(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a cross-encoder that needs no weights."""
    with running(tmp_path_factory.mktemp("cross") / "data", **ONE, **PATIENT, **place()) as server:
        yield server


def logits(text: str) -> tuple[float, ...]:
    return struct.unpack("<3f", EchoEncoder(EngineConfig(echo_classes=3)).encode([[*text.encode()]])[0])


def pair_score(first: str, second: str) -> float:
    ids, start = ByteTokenizer().pairs_of(first)(second)
    [logit] = struct.unpack("<1f", EchoEncoder(EngineConfig(echo_classes=1)).encode([ids], [start])[0])
    return 1 / (1 + math.exp(-logit))


def post(server: Server, path: str, **body: object) -> httpx.Response:
    with server.client() as http:
        return http.post(path, json=body)


def classify(server: Server, **body: object) -> httpx.Response:
    return post(server, "/v1/classify", **{"model": "moods", **body})


def test_each_input_gets_its_likeliest_class_and_the_probabilities_of_all(moods: Server) -> None:
    texts = ["a cat sat", "a dog ran", "été"]
    reply = classify(moods, input=texts)
    found = reply.json()
    assert [each["index"] for each in found["data"]] == [0, 1, 2]
    for text, each in zip(texts, found["data"], strict=True):
        expected = [math.exp(logit) for logit in logits(text)]
        expected = [weight / sum(expected) for weight in expected]
        assert each["probs"] == pytest.approx(expected)
        assert each["label"] == f"LABEL_{max(range(3), key=lambda index: expected[index])}"
        assert each["num_classes"] == 3
    assert (found["object"], found["model"]) == ("list", "moods")
    assert found["id"].startswith("classify-")
    assert found["id"] == reply.headers["x-axon-stream"]
    num_tokens = sum(len(text.encode()) for text in texts)
    assert found["usage"] == {"prompt_tokens": num_tokens, "total_tokens": num_tokens}


def test_logits_come_as_they_are_where_the_request_says_so(moods: Server) -> None:
    found = classify(moods, input="a cat sat", use_activation=False).json()
    assert tuple(found["data"][0]["probs"]) == pytest.approx(logits("a cat sat"))


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({}, "input", "missing_required_parameter"),
    ({"input": []}, "input", "invalid_value"),
    ({"input": ["a", ""]}, "input", "invalid_value"),
    ({"input": {"text": "a"}}, "input", "invalid_type"),
    ({"input": [300]}, "input", "invalid_value"),
    ({"input": ["a"] * 2049}, "input", "invalid_value"),
    ({"input": "x" * 513}, "input", "context_length_exceeded"),
    ({"input": "a", "truncate_prompt_tokens": 513}, "truncate_prompt_tokens", "invalid_value"),
    ({"input": "a", "use_activation": "no"}, "use_activation", "invalid_type"),
    ({"input": "a", "messages": []}, "messages", "unsupported_parameter"),
]


@pytest.mark.parametrize(("body", "param", "code"), BAD, ids=lambda each: str(each)[:40])
def test_bad_input_is_refused_by_name(moods: Server, body: dict[str, Any], param: str, code: str) -> None:
    refused = classify(moods, **body)
    error = refused.json()["error"]
    assert (refused.status_code, error["param"], error["code"]) == (400, param, code)


def test_models_are_asked_what_they_can_answer_and_say_so_otherwise(moods: Server, cross: Server, echo: Server) -> None:
    asks: list[tuple[Server, str, str, dict[str, Any]]] = [
        (moods, "moods", "/v1/embeddings", {"input": "a"}),
        (moods, "moods", "/api/embed", {"input": "a"}),
        (moods, "moods", "/v1/rerank", {"query": "a", "documents": ["b"]}),
        (moods, "moods", "/v1/score", {"text_1": "a", "text_2": "b"}),
        (moods, "moods", "/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
        (cross, "cross", "/v1/embeddings", {"input": "a"}),
        (echo, "echo", "/v1/classify", {"input": "a"}),
    ]
    for server, model, path, body in asks:
        refused = post(server, path, **{"model": model, **body})
        assert refused.status_code == 400, path
        assert model in refused.text
    for server, capabilities in ((moods, ["classification"]), (cross, ["classification", "reranking"])):
        with server.client() as http:
            [listed] = http.get("/v1/models").json()["data"]
        assert listed["capabilities"] == capabilities


def test_a_cross_encoder_puts_documents_in_the_order_of_its_scores(cross: Server) -> None:
    documents = ["a dog ran", "a cat sat", "zwei Hunde"]
    found = post(cross, "/v1/rerank", model="cross", query="a cat", documents=documents).json()
    expected = sorted(((pair_score("a cat", each), each) for each in documents), reverse=True)
    assert [each["document"]["text"] for each in found["results"]] == [text for _, text in expected]
    assert [each["relevance_score"] for each in found["results"]] == pytest.approx([score for score, _ in expected])
    assert found["usage"]["total_tokens"] == sum(len(f"a cat|{each}") for each in documents)


def test_a_cross_encoder_scores_pairs(cross: Server) -> None:
    ask = {"model": "cross", "text_1": ["a", "b"], "text_2": ["c", "d"]}
    found = post(cross, "/v1/score", **ask).json()
    assert [each["score"] for each in found["data"]] == pytest.approx([pair_score("a", "c"), pair_score("b", "d")])
    bare = post(cross, "/v1/score", **ask, use_activation=False).json()
    assert [1 / (1 + math.exp(-each["score"])) for each in bare["data"]] == pytest.approx(
        [each["score"] for each in found["data"]]
    )


def test_a_pair_that_is_too_long_is_refused_or_cut_as_asked(cross: Server) -> None:
    ask = {"model": "cross", "query": "a", "documents": ["x" * 600]}
    refused = post(cross, "/v1/rerank", **ask)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert refused.json()["error"]["param"] == "documents"
    assert post(cross, "/v1/rerank", **{**ask, "query": "x" * 600}).json()["error"]["param"] == "query"
    cut = post(cross, "/v1/rerank", **ask, truncate_prompt_tokens=-1).json()
    assert cut["results"][0]["relevance_score"] == pytest.approx(pair_score("a", "x" * 510))
    assert cut["usage"]["total_tokens"] == 512


def test_many_pairs_become_several_jobs_and_keep_their_order(fresh: Fresh) -> None:
    server = fresh.start(**ONE, engine_max_model_len=4096)  # so that 256 pairs fill a job
    documents = [f"document {number}" for number in range(300)]
    found = post(server, "/v1/rerank", model="cross", query="a", documents=documents).json()
    scores = {each["index"]: each["relevance_score"] for each in found["results"]}
    assert [scores[index] for index in range(300)] == pytest.approx([pair_score("a", each) for each in documents])


def test_classes_are_in_the_ledger_as_prompt_tokens_alone(fresh: Fresh) -> None:
    server = fresh.start(**MANY)
    classify(server, input=["four", "five!"])

    def used() -> tuple[int, int]:
        with server.client() as http:
            rows = http.get("/v1/usage").json()["data"]
        return sum(row["prompt_tokens"] for row in rows), sum(row["output_tokens"] for row in rows)

    wait_until(lambda: used()[0] > 0, "the tokens are written down")
    assert used() == (9, 0)

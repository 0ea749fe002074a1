"""Embeddings over the whole way: the official client, large requests, bad input, and processes that die."""

import base64
import json
import os
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from axon.engine.config import EngineConfig
from axon.engine.encoder.echo import EchoEncoder
from tests.journeys.conftest import PATIENT, Fresh, Settings
from tests.journeys.server import Server, running, wait_until
from tests.journeys.test_chat import client

DIMENSIONS = 64
ECHO: Settings = {"engine_kind": "echo", "engine_echo_dimensions": DIMENSIONS, "model_name": "vectors"}
TEXTS = ["a cat sat", "a dog ran", "zwei Hunde", "été à la plage"]


@pytest.fixture(scope="module")
def vectors(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with an embedding model that needs no weights."""
    with running(tmp_path_factory.mktemp("vectors") / "data", **ECHO, **PATIENT, **place()) as server:
        yield server


def expected(text: str, dimensions: int = DIMENSIONS) -> tuple[float, ...]:
    encoder = EchoEncoder(EngineConfig(echo_dimensions=dimensions))
    return struct.unpack(f"<{dimensions}f", encoder.encode([[*text.encode()]])[0])


def post(server: Server, **body: object) -> httpx.Response:
    with server.client() as http:
        return http.post("/v1/embeddings", json={"model": "vectors", **body})


def test_the_official_client_gets_a_vector_for_each_text_in_order(vectors: Server) -> None:
    with client(vectors) as api:
        found = api.embeddings.create(model="vectors", input=TEXTS)  # asks for base64 by itself
    assert [tuple(each.embedding) for each in found.data] == [expected(text) for text in TEXTS]
    assert [each.index for each in found.data] == [0, 1, 2, 3]
    num_tokens = sum(len(text.encode()) for text in TEXTS)
    assert (found.usage.prompt_tokens, found.usage.total_tokens) == (num_tokens, num_tokens)
    assert found.model == "vectors"


def test_numbers_and_base64_are_the_same_vector(vectors: Server) -> None:
    numbers = post(vectors, input="a cat sat").json()["data"][0]["embedding"]
    coded = post(vectors, input="a cat sat", encoding_format="base64").json()["data"][0]["embedding"]
    assert struct.unpack(f"<{DIMENSIONS}f", base64.b64decode(coded)) == tuple(numbers) == expected("a cat sat")


def test_ollamas_clients_get_the_same_vectors(vectors: Server) -> None:
    with vectors.client() as http:
        found = http.post("/api/embed", json={"model": "vectors:latest", "input": TEXTS[:2]}).json()
        one = http.post("/api/embed", json={"model": "vectors", "input": TEXTS[0], "keep_alive": "5m"}).json()
        empty = http.post("/api/embed", json={"model": "vectors", "input": []})
    assert [tuple(each) for each in found["embeddings"]] == [expected(text) for text in TEXTS[:2]]
    assert found["prompt_eval_count"] == sum(len(text.encode()) for text in TEXTS[:2])
    assert one["embeddings"] == found["embeddings"][:1]
    assert (empty.status_code, type(empty.json()["error"])) == (400, str)


def test_a_batch_may_ask_for_vectors(vectors: Server) -> None:
    lines = [
        {
            "custom_id": str(index),
            "method": "POST",
            "url": "/v1/embeddings",
            "body": {"model": "vectors", "input": text},
        }
        for index, text in enumerate(TEXTS)
    ]
    with client(vectors) as api:
        data = "\n".join(map(json.dumps, lines)).encode()
        file = api.files.create(file=("lines.jsonl", data), purpose="batch")
        made = api.batches.create(input_file_id=file.id, endpoint="/v1/embeddings", completion_window="24h")
        wait_until(lambda: api.batches.retrieve(made.id).status == "completed", "the batch is answered")
        output = api.batches.retrieve(made.id).output_file_id
        assert output is not None
        found = [json.loads(line) for line in api.files.content(output).text.splitlines()]
    answers = {each["custom_id"]: each["response"]["body"]["data"][0]["embedding"] for each in found}
    assert answers == {str(index): list(expected(text)) for index, text in enumerate(TEXTS)}


def test_token_ids_are_taken_as_they_are(vectors: Server) -> None:
    ids = list(b"a cat sat")
    assert tuple(post(vectors, input=ids).json()["data"][0]["embedding"]) == expected("a cat sat")
    two = post(vectors, input=[ids, list(b"a dog ran")]).json()["data"]
    assert [tuple(each["embedding"]) for each in two] == [expected("a cat sat"), expected("a dog ran")]


def used(server: Server) -> tuple[int, int]:
    """Prompt and output tokens of the tenant so far."""
    with server.client() as http:
        rows = http.get("/v1/usage").json()["data"]
    return sum(row["prompt_tokens"] for row in rows), sum(row["output_tokens"] for row in rows)


def test_what_was_used_is_in_the_ledger_as_prompt_tokens_alone(fresh: Fresh) -> None:
    server = fresh.start(**ECHO)
    post(server, input=["four", "five!"])
    wait_until(lambda: used(server)[0] > 0, "the tokens are written down")
    assert used(server) == (9, 0)


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({}, "input", "missing_required_parameter"),
    ({"input": ""}, "input", "invalid_value"),
    ({"input": []}, "input", "invalid_value"),
    ({"input": ["a", ""]}, "input", "invalid_value"),
    ({"input": ["a", 1]}, "input", "invalid_type"),
    ({"input": {"text": "a"}}, "input", "invalid_type"),
    ({"input": [[1, 2], [300]]}, "input", "invalid_value"),
    ({"input": [-1]}, "input", "invalid_value"),
    ({"input": ["a"] * 2049}, "input", "invalid_value"),
    ({"input": "x" * 513}, "input", "context_length_exceeded"),
    ({"input": "a", "encoding_format": "int8"}, "encoding_format", "invalid_value"),
    ({"input": "a", "dimensions": 32}, "dimensions", "unsupported_parameter"),
    ({"input": "a", "dimensions": 0}, "dimensions", "invalid_value"),
    ({"input": "a", "prompt_name": "query"}, "prompt_name", "invalid_value"),
    ({"input": "a", "truncate_prompt_tokens": 513}, "truncate_prompt_tokens", "invalid_value"),
    ({"input": "a", "truncate_prompt_tokens": 0}, "truncate_prompt_tokens", "invalid_value"),
    ({"input": "a", "messages": []}, "messages", "unsupported_parameter"),
    ({"input": "a", "stream": True}, "stream", "unsupported_parameter"),
]


@pytest.mark.parametrize(("body", "param", "code"), BAD, ids=lambda each: str(each)[:40])
def test_bad_input_is_refused_by_name(vectors: Server, body: dict[str, Any], param: str, code: str) -> None:
    refused = post(vectors, **body)
    error = refused.json()["error"]
    assert (refused.status_code, error["param"], error["code"]) == (400, param, code)
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_a_long_input_is_cut_where_the_request_says_so(vectors: Server) -> None:
    cut = post(vectors, input="x" * 600, truncate_prompt_tokens=-1).json()
    assert tuple(cut["data"][0]["embedding"]) == expected("x" * 512)
    assert cut["usage"]["prompt_tokens"] == 512
    shorter = post(vectors, input=["x" * 600, "y"], truncate_prompt_tokens=3).json()
    assert [tuple(each["embedding"]) for each in shorter["data"]] == [expected("xxx"), expected("y")]


def test_an_embedding_model_writes_no_text_and_says_so(vectors: Server) -> None:
    ask: dict[str, dict[str, Any]] = {"/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]}}
    ask |= {"/v1/completions": {"prompt": "hi"}, "/v1/responses": {"input": "hi"}}
    with vectors.client() as http:
        for path, body in ask.items():
            refused = http.post(path, json={"model": "vectors", **body})
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "model_not_supported"), path
            assert "/v1/embeddings" in refused.json()["error"]["message"]
        [listed] = http.get("/v1/models").json()["data"]
    assert listed["capabilities"] == ["embeddings"]


def test_a_chat_model_gives_no_embeddings_and_says_so(echo: Server) -> None:
    with echo.client() as http:
        refused = http.post("/v1/embeddings", json={"model": "echo", "input": "hi"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "model_not_supported")


def test_a_request_whose_vectors_fill_several_chunks_is_answered_in_order(fresh: Fresh) -> None:
    server = fresh.start(**{**ECHO, "engine_echo_dimensions": 4096})
    texts = [f"text {number}" for number in range(150)]  # 64 vectors of 16 KiB fit into a chunk
    found = post(server, input=texts, encoding_format="base64").json()
    got = [struct.unpack("<4096f", base64.b64decode(each["embedding"])) for each in found["data"]]
    assert got == [expected(text, 4096) for text in texts]
    assert found["usage"]["prompt_tokens"] == sum(map(len, texts))


def test_a_request_survives_engines_that_are_killed(fresh: Fresh) -> None:
    server = fresh.start(**ECHO, engine_echo_step_s=0.1, engine_embedding_batch=2)
    texts = [f"text {number}" for number in range(40)]
    answers: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: answers.append(post(server, input=texts).json()))
    asking.start()
    for _ in range(2):
        wait_until(lambda: server.metric("axon_requests_running") > 0, "the engine computes")
        [engine] = server.engine_pids()
        os.kill(engine, signal.SIGKILL)
        wait_until(lambda engine=engine: server.engine_pids() not in ([], [engine]), "another engine is up")  # type: ignore[misc]
    asking.join(60)
    assert [tuple(each["embedding"]) for each in answers[0]["data"]] == [expected(text) for text in texts]
    assert answers[0]["usage"]["prompt_tokens"] == sum(map(len, texts))


def test_an_input_that_crashes_the_engine_is_ended_alone(fresh: Fresh) -> None:
    server = fresh.start(**ECHO)
    poison = post(server, input=[[255, 255, 255], [1]])
    assert (poison.status_code, poison.json()["error"]["code"]) == (500, "worker_crash")
    assert tuple(post(server, input="still there").json()["data"][0]["embedding"]) == expected("still there")


def test_a_repeated_request_gets_the_same_vectors_and_is_counted_once(vectors: Server) -> None:
    with vectors.client() as http:
        http.headers["Idempotency-Key"] = "the-same-key"
        first = http.post("/v1/embeddings", json={"model": "vectors", "input": TEXTS})
        again = http.post("/v1/embeddings", json={"model": "vectors", "input": TEXTS})
        other = http.post("/v1/embeddings", json={"model": "vectors", "input": "another"})
    assert first.json() == again.json()
    assert first.headers["x-axon-stream"] == again.headers["x-axon-stream"]
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_key_reused")


def test_documents_are_put_in_the_order_of_their_similarity(vectors: Server) -> None:
    ask = {"model": "vectors", "query": "a cat sat", "documents": ["a dog ran", "a cat sat", "zwei Hunde"], "top_n": 2}
    with vectors.client() as http:
        found = http.post("/v1/rerank", json=ask).json()
        bare = http.post("/v1/rerank", json={**ask, "return_documents": False}).json()
        refused = http.post("/v1/rerank", json={**ask, "query": "x" * 100_000}).json()["error"]
    assert (refused["param"], refused["code"]) == ("query", "context_length_exceeded")
    first, second = found["results"]
    assert (first["index"], first["document"]["text"]) == (1, "a cat sat")
    assert first["relevance_score"] == pytest.approx(1.0)
    assert second["relevance_score"] < first["relevance_score"]
    assert "document" not in bare["results"][0]
    assert found["usage"]["total_tokens"] == 9 + 9 + 9 + 10


def test_pairs_of_texts_are_scored(vectors: Server) -> None:
    with vectors.client() as http:
        found = http.post("/v1/score", json={"model": "vectors", "text_1": "a", "text_2": ["a", "b"]}).json()
        refused = http.post("/v1/score", json={"model": "vectors", "text_1": ["a", "b"], "text_2": "a"})
    same, other = (each["score"] for each in found["data"])
    assert same == pytest.approx(1.0)
    assert other == pytest.approx(sum(x * y for x, y in zip(expected("a"), expected("b"), strict=True)), abs=1e-6)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "text_1")

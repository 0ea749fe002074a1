"""Real checkpoints, small and random, over the whole way: the answers are those of transformers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from tests.engine.encoder.models import classifier, decoder, write_tokenizer
from tests.journeys.conftest import PATIENT
from tests.journeys.server import running

BERT = ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")
QUERY, DOCUMENTS = "w5 w6", ["w7 w8 w9", "w10", "w11 w12 w5 w6"]


def ids(text: str) -> list[int]:
    return [int(word[1:]) for word in text.split()]


@contextmanager
def asked(folder: Path) -> Iterator[httpx.Client]:
    """A client of a server with the model in ``small``."""
    settings = {"model": folder / "small", "model_name": "small", **PATIENT}
    with running(folder / "data", **settings) as server, server.client() as http:
        yield http


def post(http: httpx.Client, path: str, **body: object) -> dict[str, Any]:
    reply = http.post(path, json={"model": "small", **body})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


@torch.inference_mode()
def test_a_classifier_names_the_class_that_transformers_finds(tmp_path: Path) -> None:
    model = classifier(tmp_path / "small", "Bert", num_labels=2, id2label={0: "sad", 1: "glad"})
    write_tokenizer(tmp_path / "small", *BERT)
    with asked(tmp_path) as http:
        found = post(http, "/v1/classify", input=DOCUMENTS)["data"]
        bare = post(http, "/v1/classify", input=DOCUMENTS, use_activation=False)["data"]
    for text, each, raw in zip(DOCUMENTS, found, bare, strict=True):
        logits = model(input_ids=torch.tensor([[1, *ids(text), 2]])).logits[0]
        assert each["probs"] == pytest.approx(logits.softmax(0).tolist(), abs=1e-4)
        assert raw["probs"] == pytest.approx(logits.tolist(), abs=1e-3)
        assert each["label"] == ("sad", "glad")[int(logits.argmax())]


@torch.inference_mode()
def test_a_cross_encoder_reads_query_and_document_as_transformers_does(tmp_path: Path) -> None:
    model = classifier(tmp_path / "small", "Bert", num_labels=1)
    write_tokenizer(tmp_path / "small", *BERT)
    with asked(tmp_path) as http:
        found = post(http, "/v1/rerank", query=QUERY, documents=DOCUMENTS)["results"]
        scored = post(http, "/v1/score", text_1=QUERY, text_2=DOCUMENTS)["data"]
    expected = []
    for document in DOCUMENTS:
        first, second = [1, *ids(QUERY), 2], [*ids(document), 2]
        types = [0] * len(first) + [1] * len(second)
        pair = {"input_ids": torch.tensor([first + second]), "token_type_ids": torch.tensor([types])}
        expected.append(float(model(**pair).logits[0, 0].sigmoid()))
    assert [each["score"] for each in scored] == pytest.approx(expected, abs=1e-4)
    assert [each["index"] for each in found] == sorted(range(3), key=lambda index: -expected[index])


@torch.inference_mode()
def test_a_decoder_gives_the_state_of_its_last_token(tmp_path: Path) -> None:
    model = decoder(tmp_path / "small", "Qwen3")
    write_tokenizer(tmp_path / "small", "$A [SEP]")
    with asked(tmp_path) as http:
        found = post(http, "/v1/embeddings", input=DOCUMENTS)["data"]
        [listed] = http.get("/v1/models").json()["data"]
    assert listed["capabilities"] == ["embeddings"]
    for text, each in zip(DOCUMENTS, found, strict=True):
        state = model(input_ids=torch.tensor([[*ids(text), 2]])).last_hidden_state[0, -1]
        assert each["embedding"] == pytest.approx((state / state.norm()).tolist(), abs=1e-5)

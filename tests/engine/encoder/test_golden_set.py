"""200 texts of 1 to 512 tokens in several languages: the real MiniLM gives what sentence-transformers gives.

In float32 on the arithmetic that a start takes by itself, and in int8 within what is promised of it. They take more
than a minute of processor time: a short run computes every tenth.
"""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from axon.engine.config import EngineConfig, for_device
from axon.engine.encoder.choice import open_encoder
from axon.engine.encoder.engine import Encoder
from axon.engine.native import library
from axon.engine.native.build import NotBuilt
from axon.gateway.openai.encoders.vectors import cosine
from axon.sessions.embedding_inputs import input_ids
from axon.sessions.prompt import Prompts, Threads
from axon.text.tokenizer import load_tokenizer
from tests.engine.encoder.golden_texts import DOCUMENTS, MAX_TOKENS, NUM_TEXTS, QUERIES, texts
from tests.engine.encoder.make_golden_set import ORDERS, VECTORS
from tests.engine.encoder.minilm import longer_minilm
from tests.long import some, whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's folder, without the limit of 256 tokens that its configuration sets."""
    return longer_minilm(tmp_path_factory.mktemp("minilm"), MAX_TOKENS)


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return open_encoder(for_device(EngineConfig(), "cpu"), folder)


@pytest.fixture(scope="module")
def int8(folder: Path) -> Encoder:
    try:
        library.load()
    except NotBuilt as error:
        pytest.skip(f"no native kernels here: {error}")
    return open_encoder(for_device(EngineConfig(dtype="int8"), "cpu"), folder)


async def ids_of(folder: Path, given: list[str]) -> list[list[int]]:
    threads = Threads()
    prompts = Prompts(load_tokenizer(folder), None, threads, max_model_len=MAX_TOKENS)
    try:
        return [each.ids for each in await input_ids(prompts, given, truncate=MAX_TOKENS)]
    finally:
        threads.close()


def encoded(encoder: Encoder, inputs: list[list[int]]) -> list[bytes]:
    """The vectors, computed in batches of neighbours."""
    return [vector for first in range(0, len(inputs), 16) for vector in encoder.encode(inputs[first : first + 16])]


async def worst_cosine(folder: Path, encoder: Encoder) -> tuple[float, int]:
    """The least cosine of a vector to that of sentence-transformers, and the number of its text."""
    numbers = some(range(NUM_TEXTS))
    given = texts()
    vectors = encoded(encoder, await ids_of(folder, [given[number] for number in numbers]))
    found = np.stack([np.frombuffer(each, "<f4") for each in vectors]).astype(np.float64)
    every = np.load(VECTORS).astype(np.float64)
    assert every.shape == (NUM_TEXTS, 384)
    golden = every[numbers]
    assert found.shape == golden.shape
    cosines = (found * golden).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(golden, axis=1)
    return float(cosines.min()), numbers[int(cosines.argmin())]


async def test_the_set_has_texts_of_all_lengths(folder: Path) -> None:
    lengths = [len(ids) - 2 for ids in await ids_of(folder, texts())]  # without their special tokens
    assert len(lengths) == NUM_TEXTS
    assert min(lengths) == 1
    assert max(lengths) == MAX_TOKENS - 2
    for low in range(0, MAX_TOKENS - 32, 32):
        assert any(low < length <= low + 32 for length in lengths), f"none of {low} to {low + 32} tokens"


async def test_its_vectors_are_those_of_sentence_transformers(folder: Path, encoder: Encoder) -> None:
    cosine, text = await worst_cosine(folder, encoder)
    assert cosine >= 0.9999 + 1e-6, f"text {text} has {cosine}"


async def test_int8_is_near_to_them(folder: Path, int8: Encoder) -> None:
    cosine, text = await worst_cosine(folder, int8)
    assert cosine >= 0.999 + 1e-6, f"text {text} has {cosine}"


@pytest.mark.parametrize("arithmetic", ["encoder", "int8"])
async def test_a_vector_is_bitwise_the_same_alone_and_in_any_batch(
    folder: Path, arithmetic: str, request: pytest.FixtureRequest
) -> None:
    found: Encoder = request.getfixturevalue(arithmetic)
    inputs = await ids_of(folder, texts())
    chosen = random.Random(7).sample(range(NUM_TEXTS), 24 if whole() else 8)
    alone = [found.encode([inputs[index]])[0] for index in chosen]
    assert found.encode([inputs[index] for index in chosen]) == alone


async def test_documents_are_put_in_the_order_that_sentence_transformers_finds(folder: Path, encoder: Encoder) -> None:
    inputs = await ids_of(folder, [*QUERIES, *DOCUMENTS])
    vectors = encoded(encoder, inputs)
    queries, documents = vectors[: len(QUERIES)], vectors[len(QUERIES) :]
    orders = []
    for query in queries:
        scores = [cosine(query, each) for each in documents]
        orders.append(sorted(range(len(scores)), key=lambda index, scores=scores: -scores[index]))  # type: ignore[misc]
    assert orders == json.loads(ORDERS.read_text())

"""The real MiniLM gives the vectors that sentence-transformers gives, alone and in any batch."""

import base64
import json
import random
from pathlib import Path

import numpy as np
import pytest

from axon.engine.config import EngineConfig, for_device
from axon.engine.encoder.bert import BertEncoder
from axon.sessions.embedding_inputs import input_ids
from axon.sessions.prompt import Prompts, Threads
from axon.text.tokenizer import load_tokenizer
from tests.engine.encoder.make_golden import TEXTS
from tests.engine.encoder.minilm import minilm

GOLDEN = Path(__file__).parents[2] / "golden" / "minilm_vectors.json"
MAX_TOKENS = 256
"""The model's longest input, in tokens."""


@pytest.fixture(scope="module")
def encoder() -> BertEncoder:
    return BertEncoder(for_device(EngineConfig(), "cpu"), minilm())


@pytest.fixture
async def inputs() -> list[list[int]]:
    """The token ids of the texts, cut to what the model takes, as sentence-transformers cuts them."""
    threads = Threads()
    prompts = Prompts(load_tokenizer(minilm()), None, threads, max_model_len=MAX_TOKENS)
    try:
        return [each.ids for each in await input_ids(prompts, TEXTS, truncate=MAX_TOKENS)]
    finally:
        threads.close()


def vectors(encoder: BertEncoder, inputs: list[list[int]]) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    return np.stack([np.frombuffer(each, "<f4") for each in encoder.encode(inputs)])


def test_its_vectors_are_those_of_sentence_transformers(encoder: BertEncoder, inputs: list[list[int]]) -> None:
    golden = json.loads(GOLDEN.read_text())
    found = vectors(encoder, inputs)
    for vector, row in zip(found, golden, strict=True):
        expected = np.frombuffer(base64.b64decode(row["int8"]), np.int8).astype(np.float32)
        assert vector @ expected / np.linalg.norm(expected) >= 0.9999
        np.testing.assert_allclose(vector[:8], row["first"], atol=2e-6)
        assert abs(np.linalg.norm(vector) - 1) < 1e-5


def test_a_vector_is_bitwise_the_same_alone_and_in_any_batch(encoder: BertEncoder, inputs: list[list[int]]) -> None:
    alone = [encoder.encode([each])[0] for each in inputs]
    shuffled = list(range(len(inputs)))
    for seed in range(3):
        random.Random(seed).shuffle(shuffled)
        some = shuffled[: 5 + 7 * seed]
        assert encoder.encode([inputs[index] for index in some]) == [alone[index] for index in some]


def test_the_same_meaning_is_nearer_than_another(encoder: BertEncoder, inputs: list[list[int]]) -> None:
    places = {text: index for index, text in enumerate(TEXTS)}
    found = vectors(encoder, inputs)
    english, cat = found[places["A man is playing guitar."]], found[places["The cat sits outside."]]
    assert english @ found[places["Un homme joue de la guitare."]] > english @ cat

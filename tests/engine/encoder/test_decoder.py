"""Pooled states of decoders, small and random, against transformers in float32."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from axon.engine.config import EngineConfig, for_device
from axon.engine.encoder.decoder import PooledDecoderEncoder
from axon.engine.load.pooled_decoder import check_pooled_decoder, read_pooled_decoder
from axon.engine.load.vector_model import gives_vectors
from axon.errors import Misconfigured
from tests.engine.encoder.models import decoder

INPUTS = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 10], [11], [12, 13, 14], list(range(40))]


def opened(folder: Path, **settings: Any) -> PooledDecoderEncoder:
    check_pooled_decoder(folder, read_pooled_decoder(folder))
    return PooledDecoderEncoder(for_device(EngineConfig(**settings), "cpu"), folder)


def vectors(found: list[bytes]) -> Any:
    return np.stack([np.frombuffer(each, "<f4") for each in found])


@torch.inference_mode()
def reference(model: Any, pooling: str) -> Any:
    """What sentence-transformers makes of the last hidden states that transformers gives."""
    rows = []
    for ids in INPUTS:
        states = getattr(model, "model", model)(input_ids=torch.tensor([ids])).last_hidden_state[0]
        row = states[-1] if pooling == "lasttoken" else states.mean(0)
        rows.append((row / row.norm()).numpy())
    return np.stack(rows)


@pytest.mark.parametrize("kind", ["Qwen3", "Qwen2", "Llama", "Mistral"])
def test_its_vectors_are_those_of_transformers(tmp_path: Path, kind: str) -> None:
    model = decoder(tmp_path, kind)
    np.testing.assert_allclose(vectors(opened(tmp_path).encode(INPUTS)), reference(model, "lasttoken"), atol=1e-5)


def test_a_mean_is_pooled_where_the_configuration_says_so(tmp_path: Path) -> None:
    model = decoder(tmp_path, "Qwen3", pooling="mean_tokens")
    np.testing.assert_allclose(vectors(opened(tmp_path).encode(INPUTS)), reference(model, "mean"), atol=1e-5)


def test_a_checkpoint_with_its_head_gives_the_same_kind_of_vectors(tmp_path: Path) -> None:
    model = decoder(tmp_path, "Qwen3", bare=False, tie_word_embeddings=False)
    np.testing.assert_allclose(vectors(opened(tmp_path).encode(INPUTS)), reference(model, "lasttoken"), atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_vector_is_bitwise_the_same_alone_and_in_any_batch(tmp_path: Path, dtype: str) -> None:
    decoder(tmp_path, "Qwen3")
    encoder = opened(tmp_path, dtype=dtype)
    alone = [encoder.encode([ids])[0] for ids in INPUTS]
    assert encoder.encode(INPUTS) == alone
    assert encoder.encode(INPUTS[::-1]) == alone[::-1]
    assert encoder.encode([INPUTS[1]] * 20) == [alone[1]] * 20


def test_bfloat16_is_near_float32(tmp_path: Path) -> None:
    decoder(tmp_path, "Qwen3")
    whole, half = (vectors(opened(tmp_path, dtype=dtype).encode(INPUTS)) for dtype in ("float32", "bfloat16"))
    assert ((whole * half).sum(1) > 0.999).all()


def test_an_arithmetic_that_it_lacks_is_refused(tmp_path: Path) -> None:
    decoder(tmp_path, "Qwen3")
    with pytest.raises(Misconfigured, match="float32 or bfloat16"):
        opened(tmp_path, dtype="int8")


def test_without_a_pooling_beside_it_a_decoder_writes_text(tmp_path: Path) -> None:
    decoder(tmp_path, "Qwen3")
    assert gives_vectors(tmp_path)
    (tmp_path / "modules.json").unlink()
    assert not gives_vectors(tmp_path)


def test_a_decoder_whose_tokens_see_later_ones_is_refused(tmp_path: Path) -> None:
    decoder(tmp_path, "Qwen2")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "is_causal": False}))
    with pytest.raises(Misconfigured, match="see later ones"):
        read_pooled_decoder(tmp_path)


def test_its_length_is_the_shorter_of_what_model_and_sentences_say(tmp_path: Path) -> None:
    decoder(tmp_path, "Qwen3")
    assert read_pooled_decoder(tmp_path).max_model_len == 64
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20}))
    assert read_pooled_decoder(tmp_path).max_model_len == opened(tmp_path).max_model_len == 20

"""Encoders of the BERT family, small and random, against an independent implementation in numpy."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axon.engine.config import EngineConfig, for_device
from axon.engine.encoder.bert import BertEncoder
from axon.engine.load.encoder import check_encoder, is_encoder, read_encoder
from axon.errors import Misconfigured
from tests.engine.encoder.models import CONFIG, made

INPUTS = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 10], [11], [12, 13, 14], list(range(36))]


def encoder(folder: Path) -> BertEncoder:
    return BertEncoder(for_device(EngineConfig(), "cpu"), folder)


def reference(folder: Path, ids: list[int], *, pooling: str = "mean_tokens", first: int = 0) -> Any:
    """The vector of one input, in float64 and without any code of ours."""
    from safetensors.numpy import load_file

    tensors = {name: value.astype(np.float64) for name, value in load_file(folder / "model.safetensors").items()}

    def linear(name: str, rows: Any) -> Any:
        return rows @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(name: str, rows: Any) -> Any:
        centred = rows - rows.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    positions = np.arange(first, first + len(ids))
    rows = tensors["embeddings.word_embeddings.weight"][ids] + tensors["embeddings.token_type_embeddings.weight"][0]
    rows = norm("embeddings.LayerNorm", rows + tensors["embeddings.position_embeddings.weight"][positions])
    for index in range(2):
        layer = f"encoder.layer.{index}"
        q, k, v = (
            linear(f"{layer}.attention.self.{each}", rows).reshape(-1, 4, 8) for each in ("query", "key", "value")
        )
        scores = np.exp(np.einsum("ihd,jhd->hij", q, k) / math.sqrt(8))
        seen = np.einsum("hij,jhd->ihd", scores / scores.sum(-1, keepdims=True), v).reshape(-1, 32)
        rows = norm(f"{layer}.attention.output.LayerNorm", linear(f"{layer}.attention.output.dense", seen) + rows)
        inner = linear(f"{layer}.intermediate.dense", rows)
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        rows = norm(f"{layer}.output.LayerNorm", linear(f"{layer}.output.dense", inner) + rows)
    pooled = {"mean_tokens": rows.mean(0), "cls_token": rows[0], "max_tokens": rows.max(0), "lasttoken": rows[-1]}[
        pooling
    ]
    return pooled / np.linalg.norm(pooled)


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token", "max_tokens", "lasttoken"])
def test_its_vectors_are_those_of_an_independent_implementation(tmp_path: Path, pooling: str) -> None:
    folder = made(tmp_path / "model", pooling=pooling)
    found = encoder(folder).encode(INPUTS)
    for vector, ids in zip(found, INPUTS, strict=True):
        expected = reference(folder, ids, pooling=pooling)
        np.testing.assert_allclose(np.frombuffer(vector, "<f4"), expected, atol=2e-5)


def test_a_vector_is_bitwise_the_same_alone_and_in_any_batch(tmp_path: Path) -> None:
    bert = encoder(made(tmp_path / "model"))
    alone = [bert.encode([ids])[0] for ids in INPUTS]
    assert bert.encode(INPUTS) == alone
    assert bert.encode(INPUTS[::-1]) == alone[::-1]
    assert bert.encode([INPUTS[1]] * 20) == [alone[1]] * 20


def test_roberta_counts_positions_from_behind_its_padding(tmp_path: Path) -> None:
    folder = made(tmp_path / "model", model_type="xlm-roberta", pad_token_id=1, type_vocab_size=1)
    [vector] = encoder(folder).encode([[5, 6, 7]])
    np.testing.assert_allclose(np.frombuffer(vector, "<f4"), reference(folder, [5, 6, 7], first=2), atol=2e-5)
    assert read_encoder(folder).max_model_len == 36


def test_tensors_may_have_the_models_name_before_theirs(tmp_path: Path) -> None:
    plain, named = made(tmp_path / "plain"), made(tmp_path / "named", prefix="bert.")
    check_encoder(named, read_encoder(named))
    assert encoder(named).encode(INPUTS) == encoder(plain).encode(INPUTS)


def test_without_modules_it_is_the_mean_and_not_normalised(tmp_path: Path) -> None:
    folder = made(tmp_path / "model", modules=False)
    found = np.frombuffer(encoder(folder).encode([[1, 2, 3]])[0], "<f4")
    assert abs(np.linalg.norm(found) - 1) > 0.01
    np.testing.assert_allclose(found / np.linalg.norm(found), reference(folder, [1, 2, 3]), atol=2e-5)
    assert read_encoder(folder).max_model_len == 40


def test_prompts_and_smaller_sizes_are_read_from_the_configuration(tmp_path: Path) -> None:
    folder = made(tmp_path / "model", matryoshka_dimensions=[8, 16])
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "query: ", "document": ""}, "default_prompt_name": "query"})
    )
    embeds = read_encoder(folder).embeds
    assert (embeds.dimensions, embeds.prompts, embeds.default_prompt) == (32, (("query", "query: "),), "query")
    assert [size for size in range(1, 34) if embeds.allows(size)] == [8, 16, 32]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_act": "swish"}, "activation"),
        ({"position_embedding_type": "relative_key"}, "positions"),
        ({"pooling": "weightedmean_tokens"}, "pooling of weightedmean"),
        ({"is_decoder": True}, "generates text"),
    ],
)
def test_what_it_cannot_compute_is_refused_by_name(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        made(tmp_path / "model", **change)


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, 1 << 31])
@pytest.mark.parametrize(
    "name",
    [
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "max_position_embeddings",
        "type_vocab_size",
    ],
)
def test_sizes_that_are_no_sizes_are_refused_by_name(tmp_path: Path, name: str, value: object) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, name: value}))
    with pytest.raises(Misconfigured, match=name):
        read_encoder(tmp_path)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"pad_token_id": -2}, "pad_token_id"),
        ({"pad_token_id": 1.5}, "pad_token_id"),
        ({"pad_token_id": 39}, "max_position_embeddings"),
        ({"num_attention_heads": 5}, "hidden_size"),
        ({"num_attention_heads": 64}, "hidden_size"),
    ],
)
def test_positions_and_heads_that_lie_outside_the_tables_are_refused(
    tmp_path: Path, change: dict[str, Any], name: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "model_type": "roberta", **change}))
    with pytest.raises(Misconfigured, match=name):
        read_encoder(tmp_path)


def test_a_length_below_one_token_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "model")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": -1}))
    with pytest.raises(Misconfigured, match="longest length"):
        read_encoder(folder)


def test_a_folder_with_a_tensor_of_another_shape_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "model")
    (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": 51}))
    assert is_encoder(folder)
    with pytest.raises(Misconfigured, match="word_embeddings"):
        check_encoder(folder, read_encoder(folder))


def test_an_arithmetic_that_it_lacks_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "model")
    with pytest.raises(Misconfigured, match="float32"):
        BertEncoder(for_device(EngineConfig(dtype="int8"), "cpu"), folder)

"""Encoders with a classification head, small and random, against transformers in float32."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from axon.domain.model.classes import Activation
from axon.engine.config import EngineConfig, for_device
from axon.engine.encoder.bert import BertEncoder
from axon.engine.encoder.choice import open_encoder
from axon.engine.encoder.engine import Encoder
from axon.engine.encoder.head import with_head
from axon.engine.load.encoder import check_encoder, read_encoder
from axon.engine.native import library
from axon.engine.native.build import NotBuilt
from tests.engine.encoder.models import classifier

INPUTS = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 10], [11], [12, 13, 14], list(range(2, 38))]
STARTS = [2, 4, 0, 1, 30]


def encoder(folder: Path) -> Encoder:
    check_encoder(folder, read_encoder(folder))
    return with_head(BertEncoder(for_device(EngineConfig(), "cpu"), folder), folder)


def logits(vectors: list[bytes]) -> Any:
    return np.stack([np.frombuffer(each, "<f4") for each in vectors])


@torch.inference_mode()
def reference(model: Any, inputs: list[list[int]], starts: list[int]) -> Any:
    rows = []
    for ids, start in zip(inputs, starts, strict=True):
        types = [int(0 < start <= at) for at in range(len(ids))]
        rows.append(model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types])).logits[0].numpy())
    return np.stack(rows)


@pytest.mark.parametrize("kind", ["Bert", "Roberta", "XLMRoberta"])
@pytest.mark.parametrize("num_labels", [1, 3])
def test_its_logits_are_those_of_transformers(tmp_path: Path, kind: str, num_labels: int) -> None:
    model = classifier(tmp_path, kind, num_labels=num_labels)
    inputs = [[2 + token_id % 40 for token_id in ids] for ids in INPUTS]  # transformers counts no position for padding
    found = logits(encoder(tmp_path).encode(inputs))
    np.testing.assert_allclose(found, reference(model, inputs, [0] * len(inputs)), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(("dtype", "off"), [("float32", 1e-4), ("int8", 0.05)])
def test_the_native_kernels_give_them_too(tmp_path: Path, dtype: Any, off: float) -> None:
    model = classifier(tmp_path, "Bert", num_labels=2, num_attention_heads=2)
    try:
        library.load()
    except NotBuilt as error:
        pytest.skip(f"no native kernels here: {error}")
    native = with_head(open_encoder(for_device(EngineConfig(threads=2, dtype=dtype), "cpu"), tmp_path), tmp_path)
    assert native.kernel.startswith(f"encoder-{dtype}-")
    expected = reference(model, INPUTS, STARTS)
    found = logits(native.encode(INPUTS, STARTS))
    np.testing.assert_allclose(found, expected, atol=off * np.abs(expected).max())
    alone = [native.encode([ids], [start])[0] for ids, start in zip(INPUTS, STARTS, strict=True)]
    assert native.encode(INPUTS[::-1], STARTS[::-1]) == alone[::-1]


def test_the_second_text_of_a_pair_has_the_second_type(tmp_path: Path) -> None:
    model = classifier(tmp_path, "Bert", num_labels=1)
    found = logits(bert := encoder(tmp_path).encode(INPUTS, STARTS))
    np.testing.assert_allclose(found, reference(model, INPUTS, STARTS), atol=1e-4, rtol=1e-4)
    assert bert != encoder(tmp_path).encode(INPUTS)


def test_a_model_with_one_type_reads_pairs_as_one_text(tmp_path: Path) -> None:
    classifier(tmp_path, "Roberta")
    roberta = encoder(tmp_path)
    assert roberta.encode(INPUTS, STARTS) == roberta.encode(INPUTS)


def test_logits_are_bitwise_the_same_alone_and_in_any_batch(tmp_path: Path) -> None:
    classifier(tmp_path, "Bert")
    bert = encoder(tmp_path)
    alone = [bert.encode([ids], [start])[0] for ids, start in zip(INPUTS, STARTS, strict=True)]
    assert bert.encode(INPUTS, STARTS) == alone
    assert bert.encode(INPUTS[::-1], STARTS[::-1]) == alone[::-1]
    assert bert.encode([INPUTS[1]] * 20, [STARTS[1]] * 20) == [alone[1]] * 20


def test_its_facts_say_that_it_has_classes(tmp_path: Path) -> None:
    classifier(tmp_path, "Bert", id2label={0: "sad", 1: "glad"}, num_labels=2)
    embeds = read_encoder(tmp_path).embeds
    assert embeds.classes is not None
    assert (embeds.dimensions, embeds.classes.labels) == (2, ("sad", "glad"))
    assert embeds.classes.activation is Activation.SOFTMAX
    assert encoder(tmp_path).kernel == "encoder-cpu-float32-classes"

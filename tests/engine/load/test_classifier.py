"""Classes and activations as checkpoints state them."""

import json
from pathlib import Path
from typing import Any

import pytest

from axon.domain.model.classes import Activation
from axon.engine.load.classifier import is_classifier, read_classes
from axon.errors import Misconfigured
from tests.engine.encoder.models import write_modules

IDENTITY = "torch.nn.modules.linear.Identity"
ONE = {"id2label": {"0": "LABEL_0"}}


def folder(path: Path, **config: Any) -> Path:
    stated = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "hidden_size": 8, **config}
    (path / "config.json").write_text(json.dumps(stated))
    return path


@pytest.mark.parametrize(
    ("config", "activation"),
    [
        ({}, Activation.SOFTMAX),
        (ONE, Activation.SIGMOID),
        ({"problem_type": "single_label_classification"}, Activation.SOFTMAX),
        ({"problem_type": "multi_label_classification"}, Activation.SIGMOID),
        ({"problem_type": "regression", **ONE}, Activation.NONE),
        ({**ONE, "sentence_transformers": {"activation_fn": IDENTITY}}, Activation.NONE),
        ({**ONE, "sbert_ce_default_activation_function": IDENTITY}, Activation.NONE),
        ({**ONE, "sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"}, Activation.SIGMOID),
    ],
)
def test_the_activation_is_the_one_that_the_checkpoint_states(
    tmp_path: Path, config: dict[str, Any], activation: Activation
) -> None:
    assert read_classes(folder(tmp_path, **config)).activation is activation


def test_labels_are_named_by_number_and_have_transformers_names_where_there_are_none(tmp_path: Path) -> None:
    named = read_classes(
        folder(tmp_path, id2label={"1": "b", "0": "a", "10": "k"} | {str(i): "x" for i in range(2, 10)})
    )
    assert (named.labels[0], named.labels[1], named.labels[10]) == ("a", "b", "k")
    assert read_classes(folder(tmp_path)).labels == ("LABEL_0", "LABEL_1")
    assert read_classes(folder(tmp_path, num_labels=1)).labels == ("LABEL_0",)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"id2label": {"1": "a"}}, "from 0 on"),
        ({"id2label": {"x": "a"}}, "labels"),
        ({"id2label": ["a"]}, "labels"),
        ({"num_labels": 0}, "0 labels"),
        ({"problem_type": "other"}, "problem_type"),
        ({"sbert_ce_default_activation_function": "os.system"}, "os.system"),
    ],
)
def test_what_cannot_be_understood_is_refused_by_name(tmp_path: Path, config: dict[str, Any], words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        read_classes(folder(tmp_path, **config))


def test_a_pooling_beside_the_checkpoint_makes_it_an_embedding_model(tmp_path: Path) -> None:
    assert is_classifier(folder(tmp_path))
    write_modules(tmp_path, pooling="mean_tokens")
    assert not is_classifier(tmp_path)
    assert not is_classifier(folder(tmp_path, architectures=["BertModel"]))

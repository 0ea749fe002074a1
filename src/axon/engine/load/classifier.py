"""The classification head of an encoder, read from its folder: its classes and its tensors' names. Loads no weights."""

from pathlib import Path
from typing import Any

from axon.domain.model.classes import Activation, Classes
from axon.engine.load.sentences import has_pooling, read_config
from axon.errors import Misconfigured

_BY_PROBLEM = {
    "single_label_classification": Activation.SOFTMAX,
    "multi_label_classification": Activation.SIGMOID,
    "regression": Activation.NONE,
}
_BY_FUNCTION = {
    "torch.nn.modules.linear.Identity": Activation.NONE,
    "torch.nn.modules.activation.Sigmoid": Activation.SIGMOID,
    "torch.nn.modules.activation.Softmax": Activation.SOFTMAX,
}
"""Activations as the configuration of a cross-encoder names them."""
_MOST_CLASSES = 1 << 16


def is_classifier(model_dir: Path) -> bool:
    """Whether the checkpoint has a classification head: ``architectures`` says so, and no modules.json pools."""
    config = read_config(model_dir)
    named = config.get("architectures") or [""]
    return str(named[0]).endswith("ForSequenceClassification") and not has_pooling(model_dir)


def read_classes(model_dir: Path) -> Classes:
    """The classes that config.json names; raises Misconfigured."""
    config = read_config(model_dir)
    try:
        labels = _labels(config)
    except (TypeError, ValueError, AttributeError) as error:
        raise Misconfigured(f"the labels in {model_dir}/config.json cannot be understood: {error}") from error
    if not 1 <= len(labels) <= _MOST_CLASSES:
        raise Misconfigured(f"{model_dir}/config.json has {len(labels)} labels; from 1 to {_MOST_CLASSES} are possible")
    return Classes(labels=labels, activation=_activation(config, len(labels)))


def head_shapes(model_type: str, prefix: str, hidden: int, num_classes: int) -> dict[str, tuple[int, ...]]:
    """The head's tensors, by the names Hugging Face gives them: a dense layer over the first token, then the classes.

    BERT calls the first its pooler, which belongs to the model (``prefix``); RoBERTa has both in its classifier.
    """
    dense, last = head_names(model_type, prefix)
    return {
        f"{dense}.weight": (hidden, hidden),
        f"{dense}.bias": (hidden,),
        f"{last}.weight": (num_classes, hidden),
        f"{last}.bias": (num_classes,),
    }


def head_names(model_type: str, prefix: str) -> tuple[str, str]:
    """The names of the head's two layers."""
    if model_type == "bert":
        return f"{prefix}pooler.dense", "classifier"
    return "classifier.dense", "classifier.out_proj"


def _labels(config: dict[str, Any]) -> tuple[str, ...]:
    """The names of the classes by number; ``LABEL_0`` and so on where the configuration has none, as transformers."""
    named = config.get("id2label")
    if not named:
        return tuple(f"LABEL_{index}" for index in range(int(config.get("num_labels", 2))))
    by_number = {int(index): str(label) for index, label in named.items()}
    if sorted(by_number) != list(range(len(by_number))):
        raise ValueError("id2label does not number its labels from 0 on")
    return tuple(by_number[index] for index in range(len(by_number)))


def _activation(config: dict[str, Any], num_classes: int) -> Activation:
    """What the checkpoint says, in vLLM's order: the kind of problem, then the activation of a cross-encoder."""
    if problem := config.get("problem_type"):
        if problem not in _BY_PROBLEM:
            raise Misconfigured(f"a problem_type of {problem!r} is not known; {', '.join(_BY_PROBLEM)} are")
        return _BY_PROBLEM[problem]
    stated = config.get("sentence_transformers")
    function = stated.get("activation_fn") if isinstance(stated, dict) else None
    function = function or config.get("sbert_ce_default_activation_function")
    if function:
        if function not in _BY_FUNCTION:
            raise Misconfigured(f"an activation of {function!r} is not supported yet; {', '.join(_BY_FUNCTION)} are")
        return _BY_FUNCTION[function]
    return Activation.SIGMOID if num_classes == 1 else Activation.SOFTMAX

"""An encoder's shape, read from its folder; a classification head counts as a part of it. Knows no tensors' values."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from axon.domain.model.classes import Classes
from axon.domain.model.embeds import Embeds
from axon.engine.load.classifier import head_names, head_shapes, is_classifier, read_classes
from axon.engine.load.sentences import Sentences, read_config, read_sentences
from axon.engine.load.tensor_files import check_shapes, find_tensors
from axon.errors import Misconfigured

ENCODERS = ("bert", "roberta", "xlm-roberta")
"""Model types that are encoders of the BERT family."""
_PREFIXES = ("", "bert.", "roberta.")
_FIRST = "embeddings.word_embeddings.weight"
_MOST = (1 << 31) - 1
_ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """An encoder of the BERT family, and how a text's vector is made of its last hidden states."""

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_positions: int
    """Rows of the position embedding."""
    first_position: int
    """The row of a text's first token: RoBERTa leaves out those of padding."""
    num_types: int
    norm_eps: float
    activation: str
    max_model_len: int
    """Tokens of the longest input, special tokens included."""
    pooling: str
    """``mean``, ``cls``, ``max`` or ``lasttoken``."""
    normalizes: bool
    """Whether vectors are scaled to length 1."""
    embeds: Embeds
    """With classes, a head makes logits of the vector, which is the first token's state."""

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads

    def head_shapes(self, prefix: str) -> dict[str, tuple[int, ...]]:
        """The tensors of the classification head, if it has one, by their whole names."""
        if self.embeds.classes is None:
            return {}
        return head_shapes(self.model_type, prefix, self.hidden_size, len(self.embeds.classes.labels))

    def head_names(self, prefix: str) -> tuple[str, str]:
        """The names of the classification head's two layers."""
        return head_names(self.model_type, prefix)

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors a checkpoint must have, by the names Hugging Face gives them, without the model's prefix."""
        hidden = self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            _FIRST: (self.vocab_size, hidden),
            "embeddings.position_embeddings.weight": (self.num_positions, hidden),
            "embeddings.token_type_embeddings.weight": (self.num_types, hidden),
            **_both("embeddings.LayerNorm", hidden),
        }
        for index in range(self.num_layers):
            shapes |= {f"encoder.layer.{index}.{name}": shape for name, shape in self._layer_shapes().items()}
        return shapes

    def _layer_shapes(self) -> dict[str, tuple[int, ...]]:
        hidden, inner = self.hidden_size, self.intermediate_size
        shapes: dict[str, tuple[int, ...]] = {}
        for name in ("query", "key", "value"):
            shapes |= _both(f"attention.self.{name}", hidden, hidden)
        return {
            **shapes,
            **_both("attention.output.dense", hidden, hidden),
            **_both("attention.output.LayerNorm", hidden),
            **_both("intermediate.dense", inner, hidden),
            **_both("output.dense", hidden, inner),
            **_both("output.LayerNorm", hidden),
        }


def is_encoder(model_dir: Path) -> bool:
    """Whether the folder has an encoder, by the model type in its config.json."""
    return read_config(model_dir).get("model_type") in ENCODERS


def read_encoder(model_dir: Path) -> Encoder:
    """Reads config.json and the files of sentence-transformers; raises Misconfigured."""
    config = read_config(model_dir)
    _refuse_unsupported(model_dir, config)
    sentences = read_sentences(model_dir)
    if is_classifier(model_dir):
        sentences = _with_classes(sentences, read_classes(model_dir))
    try:
        padding = 1 if config.get("pad_token_id") is None else _number(config, "pad_token_id", least=-1)
        first = 0 if config["model_type"] == "bert" else padding + 1
        num_positions = _number(config, "max_position_embeddings", least=first + 1)
        return Encoder(
            model_type=config["model_type"],
            vocab_size=_number(config, "vocab_size"),
            hidden_size=_number(config, "hidden_size", multiple_of=_number(config, "num_attention_heads")),
            intermediate_size=_number(config, "intermediate_size"),
            num_layers=_number(config, "num_hidden_layers"),
            num_heads=_number(config, "num_attention_heads"),
            num_positions=num_positions,
            first_position=first,
            num_types=_number({"type_vocab_size": 2, **config}, "type_vocab_size"),
            norm_eps=float(config.get("layer_norm_eps", 1e-12)),
            activation=config.get("hidden_act", "gelu"),
            max_model_len=_model_len(num_positions - first, sentences.max_tokens),
            pooling=sentences.pooling,
            normalizes=sentences.normalizes,
            embeds=sentences.embeds,
        )
    except KeyError as error:
        raise Misconfigured(f"{model_dir}/config.json does not say {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise Misconfigured(f"the configuration in {model_dir} cannot be understood: {error}") from error


def _number(config: dict[str, Any], name: str, *, least: int = 1, multiple_of: int = 1) -> int:
    """A number of config.json, as the kernels can trust it: they read memory by it."""
    value = config[name]
    if type(value) is not int or not least <= value <= _MOST or value % multiple_of:
        multiple = f", a multiple of {multiple_of}" if multiple_of > 1 else ""
        raise Misconfigured(
            f"config.json says {name} is {value!r}; it must be a whole number from {least} on{multiple}"
        )
    return value


def _model_len(room: int, asked: int) -> int:
    """Tokens of the longest input: as the files of sentence-transformers say, so far as there are positions."""
    if asked < 0:
        raise Misconfigured(f"an input's longest length must be one token at least, not {asked}")
    return min(room, asked or room)


def check_encoder(model_dir: Path, encoder: Encoder) -> None:
    """Raises Misconfigured unless the folder has every tensor that the encoder needs, in its shape."""
    prefix = tensor_prefix(model_dir)
    shapes = {prefix + name: shape for name, shape in encoder.tensor_shapes().items()}
    check_shapes(model_dir, shapes | encoder.head_shapes(prefix))


def tensor_prefix(model_dir: Path) -> str:
    """What stands before the names of the encoder's tensors; a checkpoint with a head has its model's name there."""
    names = find_tensors(model_dir)
    return next((prefix for prefix in _PREFIXES if prefix + _FIRST in names), "")


def _with_classes(sentences: Sentences, classes: Classes) -> Sentences:
    """A head reads the state of the first token."""
    embeds = Embeds(dimensions=len(classes.labels), lowercase=sentences.embeds.lowercase, classes=classes)
    return replace(sentences, pooling="cls", normalizes=False, embeds=embeds)


def _both(name: str, outputs: int, *inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (outputs, *inputs), f"{name}.bias": (outputs,)}


def _refuse_unsupported(model_dir: Path, config: dict[str, Any]) -> None:
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise Misconfigured(f"positions of type {config['position_embedding_type']!r} are not supported yet")
    if config.get("hidden_act", "gelu") not in _ACTIVATIONS:
        raise Misconfigured(f"an activation of type {config['hidden_act']!r} is not supported yet")
    if config.get("is_decoder"):
        raise Misconfigured(f"{model_dir} has a BERT that generates text, which is not supported")

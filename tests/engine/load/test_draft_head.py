"""Draft heads are read as they are published; those that do not fit their target are refused by name."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from axon.engine.load.architecture import read_architecture
from axon.engine.load.draft_head import feature_layers, read_head
from axon.engine.load.head_folder import is_head
from axon.errors import Misconfigured
from tests.engine.head_files import make_head, make_target


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_target(tmp_path_factory.mktemp("models") / "target")


@pytest.mark.parametrize("layer", ["midlayer", "layers.0"])
def test_a_head_is_read_with_what_it_has_itself(target: Path, tmp_path: Path, layer: str) -> None:
    plain = read_head(make_head(tmp_path / "plain", layer=layer), read_architecture(target))
    own = read_head(make_head(tmp_path / "own", own=True, layer=layer), read_architecture(target))
    assert (plain.has_embedding, plain.has_output) == (False, False)
    assert (own.has_embedding, own.has_output) == (True, True)
    assert plain.layers == feature_layers(7) == (2, 3, 4)
    assert len(plain.ids) == len(set(plain.ids.tolist())) == 100
    assert plain.take("layer.self_attn.q_proj.weight").shape == (48, 96)


def test_a_head_without_d2t_drafts_every_token(target: Path, tmp_path: Path) -> None:
    folder = make_head(tmp_path / "head", draft_vocab_size=272, less="d2t")
    assert np.array_equal(read_head(folder, read_architecture(target)).ids, np.arange(272))


def test_a_head_may_name_its_layers(target: Path, tmp_path: Path) -> None:
    named = {"eagle_aux_hidden_state_layer_ids": [1, 2, 6]}
    folder = make_head(tmp_path / "head", eagle_config=named)
    assert read_head(folder, read_architecture(target)).layers == (1, 2, 6)


def test_heads_are_told_from_models(target: Path, tmp_path: Path) -> None:
    assert is_head(make_head(tmp_path / "head"))
    assert not is_head(target)
    assert not is_head(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hidden_size": 64}, "a head for models of hidden size 64, and this model has 48"),
        ({"vocab_size": 300}, "a head for models of 300 tokens, and this model has 272"),
        ({"architectures": ["LlamaForCausalLMEagle"]}, "only EAGLE-3 heads"),
        ({"layer": "elsewhere"}, "only EAGLE-3 heads"),
        ({"num_hidden_layers": 2}, "has 2 layers"),
        ({"draft_vocab_size": 100, "less": "d2t"}, "nothing says which"),
        ({"less": "fc.weight"}, "has no tensor 'fc.weight'"),
        ({"norm_before_residual": True}, "normalises"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2]}}, "three layers in order"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 7]}}, "this model has 7"),
    ],
)
def test_what_does_not_fit_is_refused(target: Path, tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    folder = make_head(tmp_path / "head", **changes)
    with pytest.raises(Misconfigured) as refused:
        read_head(folder, read_architecture(target))
    assert said in refused.value.message
    assert str(folder) in refused.value.message


def test_ids_that_the_model_does_not_have_are_refused(target: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = make_head(tmp_path / "head")
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"d2t": tensors["d2t"] + 200}, folder / "model.safetensors")
    with pytest.raises(Misconfigured, match="names tokens that the model does not have"):
        read_head(folder, read_architecture(target))
    save_file(tensors | {"d2t": tensors["d2t"][:50]}, folder / "model.safetensors")
    with pytest.raises(Misconfigured, match="not 100 whole numbers"):
        read_head(folder, read_architecture(target))


def test_a_model_of_few_layers_has_no_head(tmp_path: Path) -> None:
    from tests.engine.builders import make_tiny_llama

    small = make_tiny_llama(tmp_path / "small")
    with pytest.raises(Misconfigured, match="too small for heads"):
        read_head(make_head(tmp_path / "head"), read_architecture(small))

"""Published checkpoints in fp8: every number is what the scales make of it, whatever the model then computes in."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from axon.engine.cuda.rows import widen
from axon.engine.cuda.weights.layers import load_matrices
from axon.engine.cuda.weights.upload import Upload
from axon.engine.engine import Engine
from axon.engine.load.architecture import read_architecture
from axon.engine.load.tensor_files import check_tensors
from axon.engine.load.weights import Weights
from axon.errors import Misconfigured
from tests.engine.builders import make_add, make_tiny_llama, run_to_end, with_config
from tests.engine.load.quantised.fp8_files import LAYOUTS, compressed, publish

CPU = torch.device("cpu")
WIDE = {
    "hidden_size": 160,
    "intermediate_size": 272,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
}
QKV = [f"model.layers.0.self_attn.{name}_proj.weight" for name in "qkv"]
DOWN = "model.layers.1.mlp.down_proj.weight"


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_tiny_llama(tmp_path / "wide", **WIDE)


def test_every_tensor_is_its_numbers_times_its_scales(folder: Path, tmp_path: Path, layout: str) -> None:
    meant = publish(folder, tmp_path / "fp8", layout)
    check_tensors(tmp_path / "fp8", read_architecture(tmp_path / "fp8"))
    with Weights(tmp_path / "fp8", torch.float32) as weights:
        for name, tensor in meant.items():
            torch.testing.assert_close(weights.take(name), tensor.float(), rtol=1e-6, atol=0)
        assert torch.equal(weights.take_part(DOWN, 1, 3, 130), weights.take(DOWN)[:, 3:130])
        assert torch.equal(weights.take_part(DOWN, 0, 3, 130), weights.take(DOWN)[3:130])
    assert read_architecture(tmp_path / "fp8").is_fp8
    assert not read_architecture(folder).is_fp8


def test_an_engine_says_what_it_says_of_the_same_numbers_in_float32(folder: Path, tmp_path: Path, layout: str) -> None:
    meant = publish(folder, tmp_path / "fp8", layout)
    save_file({name: tensor.float().contiguous() for name, tensor in meant.items()}, folder / "model.safetensors")
    adds = [make_add(str(index), prompt=5 + index, max_tokens=6, ignore_eos=True) for index in range(3)]
    ours, theirs = (Engine(with_config(device="cpu"), each) for each in (tmp_path / "fp8", folder))
    assert run_to_end(ours, adds) == run_to_end(theirs, adds)


def test_a_gpu_gets_the_very_numbers_where_an_output_has_one_scale(folder: Path, tmp_path: Path, layout: str) -> None:
    meant = publish(folder, tmp_path / "fp8", layout)
    names = {"qkv": QKV, "down": [DOWN]}
    with torch.inference_mode(), Weights(tmp_path / "fp8", torch.bfloat16) as weights, Upload(weights, CPU) as source:
        exact = weights.take_fp8(QKV) is not None
        matrices = load_matrices(source, names, CPU, fp8=True)
        source.finish()
    assert exact == (layout in ("tensor", "channel"))
    for product, parts in names.items():
        expected = torch.cat([meant[name] for name in parts]).float()
        found = widen(matrices[product])
        if exact:
            torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
        else:
            distance = float((found - expected).norm() / expected.norm())
            assert 0 < distance < 0.04, "rounded once more, to a scale for each output"


def without_scales(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors[f"{DOWN}_scale"]
    save_file(tensors, folder / "model.safetensors")


def with_few_scales(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {f"{DOWN}_scale": torch.ones(7, 1)}, folder / "model.safetensors")


def with_whole_scales(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {f"{DOWN}_scale": torch.ones(1, dtype=torch.int32)}, folder / "model.safetensors")


def configured(**quantisation: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"quantization_config": quantisation}))

    return change


def changed_weights(**changes: Any) -> Callable[[Path], None]:
    quantisation = compressed("channel")
    quantisation["config_groups"]["group_0"]["weights"].update(changes)
    return configured(**quantisation)


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "no scales": (without_scales, "down_proj.weight_scale is missing"),
    "too few scales": (with_few_scales, r"scales of shape \[7, 1\] fit neither"),
    "scales that are no floats": (with_whole_scales, "is I32, not a float"),
    "int4": (changed_weights(type="int", num_bits=4), "int of 4 bits"),
    "groups": (changed_weights(strategy="group"), "scales by 'group'"),
    "other blocks": (changed_weights(strategy="block", block_structure=[64, 64]), r"blocks are \[64, 64\]"),
    "no groups": (configured(quant_method="compressed-tensors"), "names no config_groups"),
    "e5m2": (configured(quant_method="fp8", fmt="e5m2"), "numbers are e5m2"),
    "DeepSeek with other blocks": (configured(quant_method="fp8", weight_block_size=[1, 32]), r"blocks are \[1, 32\]"),
    "another method": (configured(quant_method="bitnet"), "'bitnet' is not read"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_named(folder: Path, tmp_path: Path, case: str) -> None:
    publish(folder, tmp_path / "fp8", "channel")
    damage, message = BROKEN[case]
    damage(tmp_path / "fp8")
    with pytest.raises(Misconfigured, match=message):
        check_tensors(tmp_path / "fp8", read_architecture(tmp_path / "fp8"))

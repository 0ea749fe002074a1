"""Published checkpoints in four bits: every number is what its scale and zero point make of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from axon.engine.cuda.weights.upload import Upload
from axon.engine.engine import Engine
from axon.engine.load.architecture import read_architecture
from axon.engine.load.quantised.four_bit_layout import FourBits
from axon.engine.load.quantised.four_bit_matrices import unpacked
from axon.engine.load.tensor_files import check_tensors
from axon.engine.load.weights import Weights
from axon.errors import Misconfigured
from tests.engine.builders import make_add, make_tiny_llama, run_to_end, with_config
from tests.engine.load.quantised.four_bit_files import LAYOUTS, publish

CPU = torch.device("cpu")
WIDE = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
QKV = [f"model.layers.0.self_attn.{name}_proj.weight" for name in "qkv"]
DOWN = "model.layers.1.mlp.down_proj"


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_tiny_llama(tmp_path / "wide", **WIDE)


def test_an_int32_of_awq_is_read_as_autoawq_writes_it() -> None:
    """Output 0 lies in the lowest four bits, and outputs 2, 4, 6, 1, 3, 5, 7 follow."""
    parts = {
        "qweight": torch.tensor([[0x75316420]], dtype=torch.int32),
        "qzeros": torch.zeros(1, 1, dtype=torch.int32),
        "scales": torch.ones(1, 8, dtype=torch.float16),
    }
    assert unpacked(FourBits(method="awq", group_size=0), parts).flatten().tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


def test_an_int32_of_gptq_has_eight_inputs_and_zero_points_less_one() -> None:
    parts = {
        "qweight": torch.tensor([[0xF6543210 - (1 << 32)]], dtype=torch.int32).expand(1, 8).contiguous(),
        "qzeros": torch.tensor([[0x77777777]], dtype=torch.int32),
        "scales": torch.full((1, 8), 0.5, dtype=torch.float16),
    }
    found = unpacked(FourBits(method="gptq", group_size=0, zero_offset=1), parts)
    assert found.tolist() == [[-4.0, -3.5, -3.0, -2.5, -2.0, -1.5, -1.0, 3.5]] * 8


def test_every_tensor_is_what_its_parts_stand_for(folder: Path, tmp_path: Path, layout: str) -> None:
    meant = publish(folder, tmp_path / "four", layout)
    check_tensors(tmp_path / "four", read_architecture(tmp_path / "four"))
    with Weights(tmp_path / "four", torch.float32) as weights:
        for name, tensor in meant.items():
            assert torch.equal(weights.take(name), tensor.float()), name
        name = f"{DOWN}.weight"
        assert torch.equal(weights.take_part(name, 1, 3, 50), weights.take(name)[:, 3:50])
        assert torch.equal(weights.take_part(name, 0, 3, 50), weights.take(name)[3:50])
    assert not read_architecture(tmp_path / "four").is_fp8


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_an_engine_says_what_it_says_of_the_same_numbers_unpacked(
    folder: Path, tmp_path: Path, layout: str, dtype: str
) -> None:
    meant = publish(folder, tmp_path / "four", layout)
    save_file({name: tensor.float().contiguous() for name, tensor in meant.items()}, folder / "model.safetensors")
    adds = [make_add(str(index), prompt=5 + index, max_tokens=6, ignore_eos=True) for index in range(3)]
    config = with_config(device="cpu", dtype=dtype, block_size=16)
    ours, theirs = (Engine(config, each) for each in (tmp_path / "four", folder))
    assert run_to_end(ours, adds) == run_to_end(theirs, adds)


def test_a_gpu_gets_the_unpacked_numbers(folder: Path, tmp_path: Path, layout: str) -> None:
    meant = publish(folder, tmp_path / "four", layout)
    with torch.inference_mode(), Weights(tmp_path / "four", torch.bfloat16) as weights, Upload(weights, CPU) as source:
        stacked, fp8 = source.take_stacked(QKV), source.take_fp8(QKV)
        source.finish()
    assert torch.equal(stacked, torch.cat([meant[name] for name in QKV]).bfloat16())
    assert fp8 is None


def test_groups_follow_each_other_where_the_files_do_not_say(folder: Path, tmp_path: Path) -> None:
    meant = publish(folder, tmp_path / "four", "gptq")
    tensors = load_file(tmp_path / "four" / "model.safetensors")
    save_file(
        {name: each for name, each in tensors.items() if not name.endswith("g_idx")},
        tmp_path / "four" / "model.safetensors",
    )
    check_tensors(tmp_path / "four", read_architecture(tmp_path / "four"))
    with Weights(tmp_path / "four", torch.float32) as weights:
        assert torch.equal(weights.take(f"{DOWN}.weight"), meant[f"{DOWN}.weight"])


def tensors_with(**changes: torch.Tensor | None) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        for part, tensor in changes.items():
            del tensors[f"{DOWN}.{part}"]
            if tensor is not None:
                tensors[f"{DOWN}.{part}"] = tensor
        save_file(tensors, folder / "model.safetensors")

    return change


def configured(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        config["quantization_config"] |= changes
        (folder / "config.json").write_text(json.dumps(config))

    return change


def unsaid(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    del config["quantization_config"]
    (folder / "config.json").write_text(json.dumps(config))


def odd_sizes(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 99}))


BROKEN: dict[str, tuple[Callable[[Path], None], str]] = {
    "no zero points": (tensors_with(qzeros=None), "down_proj.qzeros' is missing"),
    "too few scales": (tensors_with(scales=torch.ones(1, 64).half()), r"is \[1, 64\]; gptq with groups of 32 makes it"),
    "scales that are no floats": (tensors_with(scales=torch.ones(3, 64).int()), "cannot be I32"),
    "numbers that are floats": (tensors_with(qweight=torch.ones(12, 64)), "cannot be F32"),
    "another size": (odd_sizes, "no multiples of 8"),
    "three bits": (configured(bits=3), "numbers have 3 bits"),
    "odd groups": (configured(group_size=12), "its groups are 12"),
    "groups without a size": (configured(group_size=None), "its groups are None"),
    "Marlin": (configured(checkpoint_format="marlin"), "format is 'marlin'"),
    "AWQ for vectors": (configured(quant_method="awq", version="gemv"), "version is 'gemv'"),
    "AWQ without zero points": (configured(quant_method="awq", zero_point=False), "no zero points"),
    "nothing said": (unsaid, "does not say how"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_named(folder: Path, tmp_path: Path, case: str) -> None:
    publish(folder, tmp_path / "four", "gptq")
    damage, message = BROKEN[case]
    damage(tmp_path / "four")
    with pytest.raises(Misconfigured, match=message):
        check_tensors(tmp_path / "four", read_architecture(tmp_path / "four"))


def test_a_group_that_is_not_there_is_named(folder: Path, tmp_path: Path) -> None:
    publish(folder, tmp_path / "four", "gptq")
    tensors_with(g_idx=torch.full((96,), 7, dtype=torch.int32))(tmp_path / "four")
    with (
        Weights(tmp_path / "four", torch.float32) as weights,
        pytest.raises(Misconfigured, match="names groups that have no scales"),
    ):
        weights.take(f"{DOWN}.weight")

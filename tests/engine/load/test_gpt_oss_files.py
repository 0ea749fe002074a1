"""gpt-oss: files in MXFP4 are the numbers they stand for, YaRN is that of transformers, what is wrong is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig
from transformers.integrations.mxfp4 import convert_moe_packed_tensors
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from axon.engine.engine import Engine
from axon.engine.load.architecture import read_architecture
from axon.engine.load.arranged import Arranged
from axon.engine.load.tensor_files import check_tensors
from axon.engine.load.weights import Weights
from axon.errors import Misconfigured
from tests.engine.builders import make_add, require_native, run_exactly, run_to_end, with_config
from tests.engine.checkpoints import make_checkpoint

SIZES = {"hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 2}
EXPERTS = "model.layers.0.mlp.experts"
PROMPTS = [[(7 * index + 13 * number) % 250 for index in range(1 + 6 * number)] for number in range(8)]


def publish(plain: Path, packed: Path) -> None:
    """Packs the experts of a folder at random, and gives the plain folder the numbers that transformers finds there."""
    generator = torch.Generator().manual_seed(3)
    tensors = load_file(plain / "model.safetensors")
    others = dict(tensors)
    for name, tensor in tensors.items():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            count, inputs, outputs = tensor.shape
            blocks = torch.randint(0, 256, (count, outputs, inputs // 32, 16), dtype=torch.uint8, generator=generator)
            scales = torch.randint(122, 127, blocks.shape[:-1], dtype=torch.uint8, generator=generator)
            del others[name]
            others |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
            tensors[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).contiguous()
    save_file(tensors, plain / "model.safetensors")
    packed.mkdir()
    save_file(others, packed / "model.safetensors")
    config = json.loads((plain / "config.json").read_text())
    (packed / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "mxfp4"}}))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same model in float32 and with its experts in MXFP4."""
    folder = tmp_path_factory.mktemp("mxfp4")
    plain, packed = make_checkpoint(folder / "plain", "gpt_oss", **SIZES), folder / "packed"
    publish(plain, packed)
    return plain, packed


def test_every_tensor_in_mxfp4_is_what_transformers_makes_of_it(folders: tuple[Path, Path]) -> None:
    plain, packed = folders
    architecture = read_architecture(packed)
    check_tensors(packed, architecture)
    with Weights(plain, torch.float32) as ours, Weights(packed, torch.float32) as theirs:
        first, second = Arranged(ours, architecture), Arranged(theirs, architecture)
        for name, shape in architecture.tensor_shapes().items():
            assert first.take(name).shape == shape
            assert torch.equal(first.take(name), second.take(name)), name
        down = "model.layers.1.mlp.experts.4.down_proj.weight"
        assert torch.equal(second.take_part(down, 1, 3, 17), first.take(down)[:, 3:17])


def test_gate_and_up_take_turns_in_the_files(folders: tuple[Path, Path]) -> None:
    plain, _ = folders
    whole = load_file(plain / "model.safetensors")[f"{EXPERTS}.gate_up_proj"]
    with Weights(plain, torch.float32) as weights:
        arranged = Arranged(weights, read_architecture(plain))
        assert torch.equal(arranged.take(f"{EXPERTS}.2.gate_proj.weight"), whole[2, :, 0::2].T)
        assert torch.equal(arranged.take(f"{EXPERTS}.2.up_proj.weight"), whole[2, :, 1::2].T)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_an_engine_says_of_mxfp4_what_it_says_of_the_same_numbers(folders: tuple[Path, Path], dtype: str) -> None:
    if dtype == "int8":
        require_native()
    adds = [make_add(str(n), prompt=prompt, max_tokens=4, ignore_eos=True) for n, prompt in enumerate(PROMPTS)]
    config = with_config(dtype=dtype, block_size=16)
    plain, packed = (run_to_end(Engine(config, folder), adds) for folder in folders)
    assert plain == packed


def test_bfloat16_mostly_says_what_float32_says(folders: tuple[Path, Path]) -> None:
    adds = [make_add(str(n), prompt=prompt, max_tokens=3, ignore_eos=True) for n, prompt in enumerate(PROMPTS)]
    exact, rounded = (
        run_to_end(Engine(with_config(dtype=dtype), folders[0]), adds) for dtype in ("float32", "bfloat16")
    )
    first = [exact[id][0] == rounded[id][0] for id in exact]
    assert sum(first) >= 0.7 * len(first), "random weights have close calls, but chance is 1 in 270"


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_prompt_from_the_prefix_cache_says_the_same_beyond_the_window(folders: tuple[Path, Path], dtype: str) -> None:
    if dtype == "int8":
        require_native()
    engine = Engine(with_config(dtype=dtype, block_size=16), folders[0])
    add = make_add(prompt=[number % 250 for number in range(70)], max_tokens=5, ignore_eos=True, logprobs=2)
    fresh = run_exactly(engine, [add])
    engine.add(add)
    again = []
    while engine.has_work:
        again += engine.step().emitted
    assert again[0].cached >= 48
    assert [(each.token, each.logprob) for each in again] == [(each.token, each.logprob) for each in fresh[add.id]]


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize("changes", [{}, {"attention_factor": 1.5}, {"beta_fast": 8.0, "beta_slow": 2.0}])
def test_yarns_frequencies_are_those_of_transformers(truncate: bool, changes: dict[str, Any], tmp_path: Path) -> None:
    rope = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "original_max_position_embeddings": 4096}
    folder = make_checkpoint(tmp_path, "gpt_oss", head_dim=64, rope_parameters=rope | changes | {"truncate": truncate})
    theirs, scale = ROPE_INIT_FUNCTIONS["yarn"](AutoConfig.from_pretrained(folder))
    ours = read_architecture(folder).rope
    assert ours.frequencies(64) == pytest.approx(theirs.tolist(), rel=1e-5)
    assert ours.scale == pytest.approx(scale)


def drop(name: str) -> Callable[[dict[str, torch.Tensor]], None]:
    def harm(tensors: dict[str, torch.Tensor]) -> None:
        del tensors[name]

    return harm


def narrow(tensors: dict[str, torch.Tensor]) -> None:
    tensors[f"{EXPERTS}.down_proj_scales"] = tensors[f"{EXPERTS}.down_proj_scales"][:, :3].contiguous()


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (drop(f"{EXPERTS}.gate_up_proj_scales"), "in MXFP4, and .*gate_up_proj_scales' is missing"),
        (drop(f"{EXPERTS}.gate_up_proj_blocks"), r"has no tensor .*experts\.gate_up_proj'"),
        (drop("model.layers.1.self_attn.sinks"), r"has no tensor .*self_attn\.sinks'"),
        (narrow, r"down_proj_scales' in .* is U8 \[6, 3, 1\]; MXFP4 makes it U8 \[6, 64, 1\]"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused_by_name(
    folders: tuple[Path, Path], harm: Callable[[dict[str, torch.Tensor]], None], reason: str, tmp_path: Path
) -> None:
    tensors = load_file(folders[1] / "model.safetensors")
    harm(tensors)
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text((folders[1] / "config.json").read_text())
    with pytest.raises(Misconfigured, match=reason):
        check_tensors(tmp_path, read_architecture(tmp_path))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"attention_bias": False}, r"without biases \(attention_bias\)"),
        ({"swiglu_limit": 0}, "swiglu_limit and swiglu_alpha are no numbers above 0"),
        ({"rope_parameters": {"rope_type": "llama3"}}, "rope scaling of type 'llama3'"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": -8.0}}, "factor of the rope scaling is no number above 0"),
        ({"quantization_config": {"quant_method": "mxfp6"}}, "'mxfp6' is not read"),
        ({"model_type": "mixtral", "attention_bias": False, "rope_parameters": {}}, "'mxfp4' is not read"),
    ],
)
def test_a_config_that_would_compute_wrongly_is_refused(
    folders: tuple[Path, Path], changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    config = json.loads((folders[1] / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(Misconfigured, match=reason):
        read_architecture(tmp_path)

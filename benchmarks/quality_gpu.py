"""How close fp8 on a GPU comes to float32 and bfloat16 on a fixed text, and by how much logits of large shapes move.

python benchmarks/quality_gpu.py --model FOLDER          the text of quality.py; a table, and one JSON line last
python benchmarks/quality_gpu.py --model FOLDER --ids FILE    token windows from a JSON file in place of the text
python benchmarks/quality_gpu.py --random                random models of the shapes of 8B and 70B, of eight layers

What serves is measured: the kernels for prompts, with keys and values in their blocks. The goals are for fp8 against
bfloat16, both measured against float32; the run fails if one is missed.
"""

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import torch  # noqa: E402

if not torch.cuda.is_available():
    print("quality_gpu needs an NVIDIA GPU, and there is none")
    sys.exit()

from axon.engine.cuda.memory.kv_memory import KVBlocks  # noqa: E402
from axon.engine.cuda.model import CudaLlama  # noqa: E402
from axon.engine.cuda.rows import FP8  # noqa: E402
from axon.engine.cuda.weights.layers import Source  # noqa: E402
from axon.engine.load.architecture import Architecture, read_architecture  # noqa: E402
from axon.engine.load.rope import Rope  # noqa: E402
from axon.engine.load.weights import Weights  # noqa: E402
from benchmarks.engine_gpu import SHAPES  # noqa: E402
from benchmarks.measures.agreement import WINDOW_TOKENS, Logits, compare, digest_of, windows  # noqa: E402
from benchmarks.measures.random_weights import RandomWeights  # noqa: E402

DEVICE = torch.device("cuda", 0)
BLOCK_SIZE = 64
MAX_LOSSES = {"fp8": (0.08, 3.5), "fp8, KV fp8": (0.09, 5.0)}
"""Goals: same likeliest token at most so much below bfloat16, perplexity at most so many percent above float32."""
MAX_DISTANCE = {"8b": 0.35, "70b": 0.6}
"""Goals for random models: the distance of logits from those of bfloat16, relative to these."""
ARITHMETICS: dict[str, tuple[torch.dtype, bool, bool]] = {
    "float32": (torch.float32, False, False),
    "bfloat16": (torch.bfloat16, False, False),
    "fp8": (torch.bfloat16, True, False),
    "fp8, KV fp8": (torch.bfloat16, True, True),
}
"""Dtype, whether the matrices are fp8, whether keys and values are."""


class OnGpu:
    """A model whose logits are computed as those of a prompt."""

    @torch.inference_mode()
    def __init__(self, architecture: Architecture, weights: Source, *, fp8: bool, kv8: bool) -> None:
        self.model = CudaLlama(architecture, weights, DEVICE, max_model_len=WINDOW_TOKENS, max_rows=8, fp8=fp8)
        width = WINDOW_TOKENS // BLOCK_SIZE
        self.kv = KVBlocks(
            architecture, num_blocks=width, block_size=BLOCK_SIZE, num_slots=8, table_width=width,
            dtype=FP8 if kv8 else self.model.dtype, device=DEVICE,
        )  # fmt: skip
        self.kv.tables[0] = torch.arange(width, dtype=torch.int32)

    @torch.inference_mode()
    def __call__(self, token_ids: list[int]) -> torch.Tensor:
        count, size = len(token_ids), self.model.queries_per_tile
        tiles = [(first, min(size, count - first), first, 0) for first in range(0, count, size)]
        inputs = {
            "ids": torch.tensor(token_ids, dtype=torch.int32, device=DEVICE),
            "positions": torch.arange(count, dtype=torch.int32, device=DEVICE),
            "slots": torch.zeros(count, dtype=torch.int32, device=DEVICE),
            "tiles": torch.tensor(tiles, dtype=torch.int32, device=DEVICE),
            "drawn_rows": torch.arange(count, device=DEVICE),
        }
        return self.model.logits(self.model.chunks(inputs, 0, inputs["ids"], self.kv)).float()


def measure_text(folder: Path, chosen: list[list[int]]) -> dict[str, dict[str, float]]:
    architecture = read_architecture(folder)
    models: dict[str, Logits] = {}
    for name, (dtype, fp8, kv8) in ARITHMETICS.items():
        with Weights(folder, dtype) as weights:
            models[name] = OnGpu(architecture, weights, fp8=fp8, kv8=kv8)
    *_, figures = compare(models, chosen)
    for name, each in figures.items():
        print(
            f"{name:12}  top-1 {each['top1']:.4f} ± {each['top1_standard_error']:.4f}  KL {each['mean_kl']:.5f}"
            f"  perplexity {each['perplexity']:.3f}, {each['perplexity_percent']:+.2f} %",
            flush=True,
        )
    return figures


def measure_random(name: str) -> dict[str, dict[str, float]]:
    """Distance of logits from those of bfloat16, relative to these, and the share of the same likeliest tokens."""
    config = SHAPES[name]
    architecture = Architecture(
        vocab_size=config["vocab_size"], hidden_size=config["hidden_size"], num_layers=8,
        intermediate_size=config["intermediate_size"], num_heads=config["num_attention_heads"],
        num_kv_heads=config["num_key_value_heads"], head_dim=config["head_dim"], rms_norm_eps=config["rms_norm_eps"],
        rope=Rope(theta=config["rope_theta"]), tied_embedding=False, max_model_len=WINDOW_TOKENS, eos_ids=frozenset(),
    )  # fmt: skip
    ids = torch.randint(config["vocab_size"], (512,), generator=torch.Generator().manual_seed(1)).tolist()
    figures: dict[str, dict[str, float]] = {}
    wide = None
    for arithmetic in ("bfloat16", "fp8", "fp8, KV fp8"):
        _, fp8, kv8 = ARITHMETICS[arithmetic]
        logits = OnGpu(architecture, RandomWeights(config, torch.bfloat16), fp8=fp8, kv8=kv8)(ids)
        torch.cuda.empty_cache()
        if wide is None:
            wide = logits
            continue
        figures[arithmetic] = {
            "distance": round(float((logits - wide).norm() / wide.norm()), 4),
            "top1": round(float((logits.argmax(-1) == wide.argmax(-1)).float().mean()), 4),
        }
        print(f"random {name}, eight layers, {arithmetic}: {figures[arithmetic]}", flush=True)
    return figures


def missed(report: dict[str, Any]) -> list[str]:
    """The goals that are missed, in words."""
    found = []
    text = report["arithmetics"]
    for name, (max_loss, max_percent) in MAX_LOSSES.items() if text else ():
        if text[name]["top1"] < text["bfloat16"]["top1"] - max_loss:
            found.append(f"{name}: top-1 {text[name]['top1']}")
        if text[name]["perplexity_percent"] > max_percent:
            found.append(f"{name}: perplexity {text[name]['perplexity_percent']:+} %")
    for shape, figures in report["random"].items():
        for name, each in figures.items():
            if each["distance"] > MAX_DISTANCE[shape]:
                found.append(f"random {shape}, {name}: distance {each['distance']}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a folder with safetensors")
    parser.add_argument("--ids", type=Path)
    parser.add_argument("--random", action="store_true")
    options = parser.parse_args()
    print(f"{' '.join(sys.argv)} on {torch.cuda.get_device_name()}", flush=True)
    report: dict[str, Any] = {
        "benchmark": "quality_gpu", "device": torch.cuda.get_device_name(), "torch": torch.__version__,
        "python": platform.python_version(), "arithmetics": {}, "random": {},
    }  # fmt: skip
    if options.model:
        chosen = json.loads(options.ids.read_text()) if options.ids else windows(options.model)
        report |= {"tokens": sum(map(len, chosen)), "digest": digest_of(chosen)}
        print(f"{report['tokens']} tokens, digest {report['digest']}", flush=True)
        report["arithmetics"] = measure_text(options.model, chosen)
    if options.random:
        report["random"] = {name: measure_random(name) for name in ("8b", "70b")}
    report["missed"] = missed(report)
    print(json.dumps(report))
    return len(report["missed"])


if __name__ == "__main__":
    sys.exit(main())

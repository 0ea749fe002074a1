"""Products and engines with weights in four bits against plain PyTorch and bfloat16. Imports Triton."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from axon.engine.cuda import tuning
from axon.engine.cuda.jit import overlaps
from axon.engine.cuda.products.products import Products
from axon.engine.cuda.rows import Rows
from axon.engine.cuda.weights.packed import Packed, pack, widen
from axon.engine.engine import Engine
from axon.engine.load.quantised.four_bit_layout import FourBits
from tests.engine.builders import make_add, run_to_end
from tests.engine.cuda.fp8 import DEVICE, EPS, SHAPES, distance, random
from tests.engine.cuda.fp8_ways import CONFIG, emit, gaps
from tests.engine.load.quantised.four_bit_files import LAYOUTS, publish

COUNTS = {"llama-8b": (1, 17, 64, 130, 500), "small": (5, 100), "smollm2": (3,)}
"""Rows: one for each table of shapes that is tried with a model's products."""


def make_packed(outputs: int, inputs: int, group: int, *, mixed: bool = False, scale: float = 0.01) -> Packed:
    """A random matrix; ``mixed``: with its inputs in any order of groups."""
    layout = FourBits(method="gptq", group_size=group, zero_offset=1)
    groups = layout.num_groups(inputs)

    def words(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.int32, device=DEVICE).random_(-(2**31), 2**31 - 1)

    parts = {
        "qweight": words(inputs // 8, outputs),
        "qzeros": words(groups, outputs // 8),
        "scales": (torch.rand(groups, outputs, device=DEVICE) * scale + scale / 10).half(),
    }
    if mixed:
        parts["g_idx"] = (torch.arange(inputs) // (group or inputs))[torch.randperm(inputs)].int().to(DEVICE)
    made = pack(layout, [parts])
    assert made is not None
    return made


def compare_product(products: Products, name: str, weight: Packed, count: int) -> None:
    """The product in parts and whole, and the matrix unpacked, against the plain ones."""
    rows = Rows(random(count, weight.shape[1]))
    expected = rows.values.float() @ widen(weight).T
    for way, made in (("parts", products.product(name, rows, weight)), ("whole", products.plain(rows, weight))):
        far = distance(made.whole(), expected)
        assert far < 5e-3, (name, weight.shape, weight.group_size, count, way, far)


def compare_shapes(products: Products) -> None:
    """Every shape of the tables gives the same product, with and without parts."""
    weight, rows = make_packed(1536, 2048, 128), random(40, 2048)
    expected = rows.float() @ widen(weight).T
    for shapes in tuning.packed_shapes():
        shape = tuning.fit_packed(shapes, 2048, 128)
        out = torch.full((shape.num_parts, 40, 1536), torch.nan, device=DEVICE)
        products.packed.few_rows(rows, weight, out, shape)
        far = distance(out.sum(0), expected)
        assert far < 1e-3, (shape, far)


@torch.inference_mode()
def compare_all() -> None:
    """Products of known shapes, groups of every kind, mixed inputs, and the unpacked matrix."""
    torch.manual_seed(0)
    failures = []
    for model, counts in COUNTS.items():
        shapes = SHAPES[model]
        products = Products(shapes["qkv"][1], torch.bfloat16, DEVICE, eps=EPS, pdl=overlaps(DEVICE))
        kinds = ((128, False), (128, True), (0, False)) if model != "smollm2" else ((32, False), (32, True))
        for name, shape in shapes.items():
            for group, mixed in kinds if name == "down" else kinds[:1]:
                weight = make_packed(*shape, group, mixed=mixed)
                wide = widen(weight)
                unpacked = products.packed.unpacked(weight)
                columns = wide if weight.order is None else wide[:, weight.order]
                if not torch.equal(unpacked, columns.bfloat16()):
                    failures.append(f"{model} {name} {group} {mixed}: unpacked otherwise")
                for count in counts if group == kinds[0][0] and not mixed else counts[:2]:
                    try:
                        compare_product(products, name, weight, count)
                    except Exception as error:  # the others are still worth knowing
                        failures.append(f"{model} {name} {count} group {group}: {type(error).__name__} {error}"[:600])
    compare_shapes(products)
    assert not failures, "\n".join(failures)


def check_published(folder: Path, on_gpu: Callable[..., Engine]) -> None:
    """Files in four bits stay so, and say what their numbers say in bfloat16: chunks, many rows, few, one."""
    random_numbers = np.random.default_rng(6)
    prompts = [random_numbers.integers(0, 1000, 65).tolist() for _ in range(24)]
    adds = [make_add(str(index), prompt=prompt, max_tokens=1, logprobs=8) for index, prompt in enumerate(prompts)]
    for layout in LAYOUTS:
        four, wide = (folder.parent / f"{folder.name}-{layout.replace(' ', '-')}-{kind}" for kind in ("four", "wide"))
        meant = publish(folder, four, layout)
        publish(folder, wide, layout)
        save_file({name: each.float().contiguous() for name, each in meant.items()}, wide / "model.safetensors")
        (wide / "config.json").write_text((folder / "config.json").read_text())
        engine = on_gpu(four, dtype="auto", **CONFIG)
        assert engine.ready().kernel == "cuda-bfloat16-w4", (layout, engine.ready().kernel)
        expected = emit(on_gpu(wide, dtype="float32", **CONFIG), adds)
        _, usual = gaps(emit(on_gpu(wide, dtype="bfloat16", **CONFIG), adds), expected)
        ways = {"chunks": emit(engine, adds), "decodes": emit(engine, adds)}
        for size, way in ((8, "few"), (1, "alone")):
            ways[way] = {}
            for first in range(0, len(adds), size):
                ways[way] |= emit(engine, adds[first : first + size])
        for way, emitted in ways.items():
            same, gap = gaps(emitted, expected)
            print(f"  {layout} {way}: top-1 {same:.2f}, mean logprob difference {gap:.4f}; bfloat16 {usual:.4f}")
            assert gap < 2 * usual + 1e-3, (layout, way)
        check_graphs(four, on_gpu)


def check_graphs(folder: Path, on_gpu: Callable[..., Engine]) -> None:
    """Graphs change no token."""
    numbers = np.random.default_rng(9)
    adds = [
        make_add(
            str(index), prompt=numbers.integers(0, 256, numbers.integers(1, 140)).tolist(), max_tokens=20, seed=index,
            ignore_eos=True, temperature=0.8,
        )
        for index in range(9)
    ]  # fmt: skip
    config: dict[str, Any] = CONFIG | {"dtype": "bfloat16", "max_batch_tokens": 256}
    late, early = on_gpu(folder, **config), on_gpu(folder, **config)
    while early.tend():
        pass
    assert run_to_end(late, adds) == run_to_end(early, adds)

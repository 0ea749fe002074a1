"""An engine in fp8: the ways that a row can take through it give nearly the same, and graphs change no token."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from axon.engine.cuda.weights.upload import Upload
from axon.engine.engine import Engine
from axon.engine.load.weights import Weights
from axon.engine.protocol.messages import Add, Emitted
from tests.engine.builders import make_add, run_to_end
from tests.engine.load.quantised.fp8_files import LAYOUTS, publish

CONFIG: dict[str, Any] = {
    "block_size": 64,
    "max_batch_tokens": 8192,
    "max_sequences": 48,
    "kv_memory_bytes": 1 << 28,
}


def emit(engine: Engine, adds: list[Add]) -> dict[str, Emitted]:
    for add in adds:
        engine.add(add)
    emitted: dict[str, Emitted] = {}
    while engine.has_work:
        emitted |= {each.id: each for each in engine.step().emitted}
    return emitted


def gaps(ours: dict[str, Emitted], theirs: dict[str, Emitted]) -> tuple[float, float]:
    """The share of prompts with the same likeliest token, and the mean difference of logprobs that both have."""
    same = np.mean([ours[id].token == each.token for id, each in theirs.items()])
    found = [
        abs(logprob - dict(ours[id].top)[token])
        for id, each in theirs.items()
        for token, logprob in each.top
        if token in dict(ours[id].top)
    ]
    return float(same), float(np.mean(found))


def compare(name: str, folder: Path, on_gpu: Callable[..., Engine]) -> None:
    random = np.random.default_rng(5)
    prompts = [random.integers(0, 1000, 65).tolist() for _ in range(48)]
    adds = [make_add(str(index), prompt=prompt, max_tokens=1, logprobs=8) for index, prompt in enumerate(prompts)]
    wide = emit(on_gpu(folder, dtype="bfloat16", **CONFIG), adds)
    for kv_dtype in ("auto", "fp8"):
        engine = on_gpu(folder, dtype="fp8", kv_dtype=kv_dtype, **CONFIG)
        assert engine.ready().kernel == ("cuda-fp8" if kv_dtype == "auto" else "cuda-fp8-kv8")
        ways = {"chunks": emit(engine, adds), "decodes": emit(engine, adds)}
        for size, way in ((8, "few"), (1, "alone")):
            ways[way] = {}
            for first in range(0, 48, size):
                ways[way] |= emit(engine, adds[first : first + size])
        for way, emitted in ways.items():
            same, gap = gaps(emitted, wide)
            own_same, own_gap = gaps(emitted, ways["chunks"])
            print(
                f"  {name} kv {kv_dtype} {way}: against bfloat16 top-1 {same:.3f}, mean logprob difference {gap:.4f}; "
                f"against chunks {own_same:.3f}, {own_gap:.4f}"
            )
            assert same > 0.2, (name, way)  # logits of a random model are nearly flat
            assert own_gap < 0.7 * gap, "the ways differ among themselves nearly as much as from bfloat16"
        check_graphs(folder, on_gpu, kv_dtype)


def check_published(folder: Path, on_gpu: Callable[..., Engine]) -> None:
    """Files in fp8 are as near to bfloat16 as the same model rounded on loading, and run in fp8 by themselves."""
    random = np.random.default_rng(6)
    prompts = [random.integers(0, 1000, 65).tolist() for _ in range(24)]
    adds = [make_add(str(index), prompt=prompt, max_tokens=1, logprobs=8) for index, prompt in enumerate(prompts)]
    wide = emit(on_gpu(folder, dtype="bfloat16", **CONFIG), adds)
    _, usual = gaps(emit(on_gpu(folder, dtype="fp8", **CONFIG), adds), wide)
    for layout in LAYOUTS:
        published = folder.parent / f"{folder.name}-{layout}"
        publish(folder, published, layout)
        engine = on_gpu(published, dtype="auto", **CONFIG)
        assert engine.ready().kernel == "cuda-fp8"
        _, gap = gaps(emit(engine, adds), wide)
        print(f"  {layout}: mean logprob difference {gap:.4f}, rounded on loading {usual:.4f}")
        assert gap < 2 * usual


def compare_ranks(folder: Path, on_gpu: Callable[..., Engine]) -> None:
    """Two ranks in fp8 are as near to bfloat16 as one is. Over Gloo, since they share a GPU; so without graphs."""
    random = np.random.default_rng(7)
    prompts = [random.integers(0, 1000, 65).tolist() for _ in range(24)]
    adds = [make_add(str(index), prompt=prompt, max_tokens=1, logprobs=8) for index, prompt in enumerate(prompts)]
    wide = emit(on_gpu(folder, dtype="bfloat16", **CONFIG), adds)
    _, usual = gaps(emit(on_gpu(folder, dtype="fp8", **CONFIG), adds), wide)
    engine = on_gpu(folder, dtype="fp8", tensor_parallel=2, **CONFIG)
    try:
        assert engine.ready().kernel == "cuda-fp8-tp2"
        for way, emitted in {"chunks": emit(engine, adds), "decodes": emit(engine, adds)}.items():
            _, gap = gaps(emitted, wide)
            print(f"  two ranks, {way}: mean logprob difference {gap:.4f}, one rank {usual:.4f}")
            assert gap < 1.5 * usual, way
    finally:
        engine.close()


@torch.inference_mode()
def compare_upload(folder: Path) -> None:
    """Matrices that files have in fp8 arrive through pinned buffers as they are, and so do their scales."""
    device = torch.device("cuda", 0)
    for layout in ("tensor", "channel"):
        published = folder.parent / f"{folder.name}-{layout}-uploaded"
        publish(folder, published, layout)
        stacks = [
            [f"model.layers.{index}.{part}.weight" for part in parts]
            for index in range(4)
            for parts in ([f"self_attn.{name}_proj" for name in "qkv"], ["mlp.gate_proj", "mlp.up_proj"])
        ]
        with Weights(published, torch.bfloat16) as weights, Upload(weights, device) as source:
            found = [source.take_fp8(names) for names in stacks]
            source.finish()
            for names, taken in zip(stacks, found, strict=True):
                expected = weights.take_fp8(names)
                assert taken is not None
                assert expected is not None
                assert taken[0].device.type == "cuda"
                assert torch.equal(taken[0].cpu().view(torch.uint8), expected[0].view(torch.uint8)), (layout, names)
                assert torch.equal(taken[1].cpu(), expected[1]), (layout, names)


def check_graphs(folder: Path, on_gpu: Callable[..., Engine], kv_dtype: str) -> None:
    random = np.random.default_rng(9)
    adds = [
        make_add(
            str(index),
            prompt=random.integers(0, 256, random.integers(1, 140)).tolist(),
            max_tokens=30,
            seed=index,
            ignore_eos=True,
            temperature=0.8,
        )
        for index in range(9)
    ]
    config: dict[str, Any] = CONFIG | {"dtype": "fp8", "kv_dtype": kv_dtype, "max_batch_tokens": 256}
    late, early = on_gpu(folder, **config), on_gpu(folder, **config)
    while early.tend():
        pass
    assert run_to_end(late, adds) == run_to_end(early, adds)

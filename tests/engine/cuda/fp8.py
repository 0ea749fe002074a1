"""The fp8 kernels against plain PyTorch. Imports Triton."""

import torch
from torch.nn import functional

from axon.engine.cuda.jit import ceil_pow2, launch, overlaps
from axon.engine.cuda.products.products import Products
from axon.engine.cuda.reference import add_norm as plain_add_norm
from axon.engine.cuda.reference import gated as plain_gated
from axon.engine.cuda.row_kernels import add_norm, embed_norm, gate, round_rows
from axon.engine.cuda.rows import FP8, Parts, Rows, empty_rows, quantise, widen

EPS = 1e-5
DEVICE = torch.device("cuda", 0)
SHAPES = {
    "llama-8b": {"qkv": (6144, 4096), "output": (4096, 4096), "gate_up": (28672, 4096), "down": (4096, 14336)},
    "llama-70b": {"qkv": (10240, 8192), "output": (8192, 8192), "gate_up": (57344, 8192), "down": (8192, 28672)},
    "small": {"qkv": (768, 512), "output": (512, 512), "gate_up": (3072, 512), "down": (512, 1536)},
    "smollm2": {"qkv": (960, 576), "output": (576, 576), "gate_up": (3072, 576), "down": (576, 1536)},
}


def random(*shape: int, spread: float = 1.0) -> torch.Tensor:
    return (torch.randn(*shape, device=DEVICE) * spread).to(torch.bfloat16)


def distance(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    assert bool(torch.isfinite(ours.float()).all()), "a number was not written, or is none"
    return float((ours.double() - theirs.double()).norm() / theirs.double().norm())


def assert_rows(ours: Rows, theirs: Rows, factor: torch.Tensor | float = 1.0) -> None:
    """Scales to six digits; numbers on the border between two of fp8 may fall to either side."""
    assert ours.scales is not None
    assert theirs.scales is not None
    torch.testing.assert_close(ours.scales, theirs.scales * factor, rtol=1e-5, atol=0)
    same = float((ours.values.view(torch.uint8) == theirs.values.view(torch.uint8)).float().mean())
    assert same > 0.999, same
    assert distance(ours.values.float(), theirs.values.float()) < 3e-3


@torch.inference_mode()
def compare_rows(count: int, size: int) -> None:
    """Norms, gate and plain rounding, from products with and without scales and in parts."""
    torch.manual_seed(size)
    width, pdl = ceil_pow2(size), overlaps(DEVICE)
    options = {"SIZE": size, "WIDTH": width, "PDL": pdl, **launch(num_warps=8, pdl=pdl)}
    weight, table = random(size, spread=0.2) + 1, random(50, size)
    rows = random(count, size)
    out = empty_rows(count, size, FP8, DEVICE)
    assert out.scales is not None
    round_rows[(count,)](rows, out.values, out.scales, **options)
    assert_rows(out, quantise(rows))

    ids = torch.randint(50, (count,), dtype=torch.int32, device=DEVICE)
    residual = torch.empty_like(rows)
    embed_norm[(count,)](
        ids, ids, table, residual, weight, out.values, out.scales, ids, ids, ids, EPS,
        UPDATE=False, QUANTISED=True, **options,
    )  # fmt: skip
    assert torch.equal(residual, table[ids.long()])
    expected, factor = plain_add_norm(residual.float(), weight, EPS)
    assert_rows(out, expected, factor)

    for num_parts in (1, 3):
        parts = Parts(
            torch.randn(num_parts, count, size, device=DEVICE) * 1000, num_parts, count * size,
            torch.rand(count, device=DEVICE) / 500, torch.rand(size, device=DEVICE) / 500,
        )  # fmt: skip
        before, cleared = random(count, size), torch.ones(count + 1, device=DEVICE)
        residual = before.clone()
        add_norm[(count,)](
            parts.tensor, parts.stride, *parts.scales, residual, weight, out.values, out.scales, cleared, EPS,
            NUM_PARTS=num_parts, SCALED=True, QUANTISED=True, CLEARS=True, **options,
        )  # fmt: skip
        assert cleared.tolist() == [0.0] * count + [1.0]
        wide = before.float() + parts.whole()
        assert distance(residual, wide) < 3e-3
        expected, factor = plain_add_norm(wide, weight, EPS)
        assert_rows(out, expected, factor)
        last = torch.full_like(rows, torch.nan)
        residual = before.clone()
        add_norm[(count,)](
            parts.tensor, parts.stride, *parts.scales, residual, weight, last, last, cleared, EPS,
            NUM_PARTS=num_parts, SCALED=True, QUANTISED=False, CLEARS=False, **options,
        )  # fmt: skip
        assert distance(last, widen(expected) * factor[:, None]) < 3e-2  # one is rounded to fp8, the other is not
        assert distance(last, functional.rms_norm(wide, (size,), weight.float(), EPS)) < 3e-3

        doubled = Parts(
            torch.randn(num_parts, count, 2 * size, device=DEVICE) * 1000, num_parts, count * 2 * size,
            torch.rand(count, device=DEVICE) / 30, torch.rand(2 * size, device=DEVICE) / 30,
        )  # fmt: skip
        gate[(count, 1)](
            doubled.tensor, doubled.stride, *doubled.scales, out.values, out.scales,
            NUM_PARTS=num_parts, SCALED=True, QUANTISED=True, **options,
        )  # fmt: skip
        first, second = doubled.whole().chunk(2, -1)
        assert_rows(out, quantise(functional.silu(first) * second))


@torch.inference_mode()
def compare_products(shapes: dict[str, tuple[int, int]], counts: tuple[int, ...]) -> None:
    """Products of rows that are fp8, that are rounded on the way, and with their gate."""
    products = Products(shapes["qkv"][1], torch.bfloat16, DEVICE, eps=EPS, pdl=overlaps(DEVICE))
    weights = {name: quantise(random(*shape, spread=0.02)) for name, shape in shapes.items()}
    for count in counts:
        for name, weight in weights.items():
            rows = quantise(random(count, shapes[name][1]))
            expected = widen(rows) @ widen(weight).T
            for made in (products.product(name, rows, weight), products.plain(rows, weight)):
                assert distance(made.whole(), expected) < 5e-3, (name, count, distance(made.whole(), expected))
        if products.rounds(count, weights["gate_up"], weights["output"], weights["down"]):
            compare_rounding(products, weights, count)


def compare_rounding(products: Products, weights: dict[str, Rows], count: int) -> None:
    seen = random(count, weights["output"].values.shape[1], spread=3.0)
    largest = seen.float().abs().view(count, 8, -1).amax(-1)
    made = products.product("output", Rows(seen, largest=largest), weights["output"])
    expected = quantise(seen)
    assert made.row_scales is not None
    torch.testing.assert_close(made.row_scales, expected.scales, rtol=1e-5, atol=0)
    assert distance(made.whole(), widen(expected) @ widen(weights["output"]).T) < 1e-2  # as in ``assert_rows``

    rows, inner = quantise(random(count, weights["gate_up"].values.shape[1])), weights["down"].values.shape[1]
    gated = Rows(
        torch.full((count, inner), torch.nan, dtype=torch.bfloat16, device=DEVICE),
        largest=torch.zeros(count, 1, device=DEVICE),
    )
    products.gated(rows, weights["gate_up"], gated)
    assert distance(gated.values, plain_gated(rows, weights["gate_up"])) < 5e-3
    assert gated.largest is not None
    assert torch.equal(gated.largest[:, 0], gated.values.float().abs().amax(-1))
    made = products.product("down", gated, weights["down"])
    assert distance(made.whole(), widen(quantise(gated.values)) @ widen(weights["down"]).T) < 1e-2


def compare_all() -> None:
    """Every kernel at sizes with and without padding, and the products of known shapes."""
    for count, size in ((5, 4096), (3, 576), (2, 14336)):
        compare_rows(count, size)
    for name, shapes in SHAPES.items():
        compare_products(shapes, (1, 7, 16, 29, 64, 130) if name != "llama-70b" else (1, 16, 64))

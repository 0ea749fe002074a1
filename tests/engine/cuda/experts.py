"""The kernels of mixtures of experts against plain PyTorch. Imports Triton."""

import torch

from axon.engine.cuda import tuning
from axon.engine.cuda.experts.experts import Mixture
from axon.engine.cuda.jit import overlaps
from axon.engine.cuda.reference import choose, mixture
from axon.engine.cuda.rows import ExpertBiases, Rows
from axon.engine.load.architecture import Experts
from tests.engine.cuda.distance import distance

SHAPES = {
    "qwen3-30b-a3b": (2048, Experts(count=128, per_token=8, inner_size=768, normalises=True)),
    "mixtral": (4096, Experts(count=8, per_token=2, inner_size=14336, normalises=True)),
    "gpt-oss": (
        2880,
        Experts(count=32, per_token=4, inner_size=2880, normalises=True, has_bias=True, limit=7.0, slope=1.702),
    ),
    "uneven, clamped": (
        200,
        Experts(count=6, per_token=3, inner_size=72, normalises=True, has_bias=True, limit=1.5, slope=1.702),
    ),
    "uneven": (200, Experts(count=20, per_token=3, inner_size=72, normalises=False)),
}
BOUNDS = {torch.bfloat16: 1.2e-2, torch.float16: 2e-3, torch.float32: 2e-5}


@torch.inference_mode()
def compare(
    hidden_size: int, experts: Experts, dtype: torch.dtype, device: torch.device, counts: tuple[int, ...]
) -> None:
    """Choice, order and products of so many rows."""
    torch.manual_seed(experts.count)

    def random(*shape: int, spread: float) -> torch.Tensor:
        return (torch.randn(*shape, device=device) * spread).to(dtype)

    made = Mixture(experts, dtype, device, pdl=overlaps(device))
    router = random(experts.count, hidden_size, spread=hidden_size**-0.5)
    gate_up = random(experts.count * 2 * experts.inner_size, hidden_size, spread=hidden_size**-0.5)
    down = random(experts.count * hidden_size, experts.inner_size, spread=experts.inner_size**-0.5)
    biases = None
    if experts.has_bias:
        sizes = {"router": experts.count, "gate_up": len(gate_up), "down": len(down)}
        biases = ExpertBiases(**{name: random(size, spread=0.5) for name, size in sizes.items()})
    for count in counts:
        rows = random(count, hidden_size, spread=1.0)
        for pdl in (False, True) if overlaps(device) else (False,):
            router_bias = biases.router if biases else None
            chosen, shares = made.choose(rows, router, router_bias, pdl=pdl)
            expected_shares, expected = choose(rows, router, experts, router_bias)
            assert float((chosen == expected).float().mean()) > 0.99, (count, "choice")
            torch.testing.assert_close(shares, expected_shares, rtol=2e-3, atol=1e-4)
            for tile in (16, 128):
                check_order(made, chosen, tile, experts, pdl=pdl)
            whole = made.compute(rows, router, Rows(gate_up), Rows(down), biases, pdl=pdl).whole()
            far = distance(whole, mixture(rows, router, gate_up, down, experts, biases))
            assert far < BOUNDS[dtype], (hidden_size, count, pdl, far)


def check_order(made: Mixture, chosen: torch.Tensor, tile: int, experts: Experts, *, pdl: bool) -> None:
    """Every pair is in one tile, of its own expert; the tiles behind them are empty."""
    pairs, tiles = made.sort(chosen, tile, pdl=pdl)
    numbers, flat = [], chosen.flatten().tolist()
    assert len(tiles) == tuning.expert_tiles(len(flat), experts.count, tile)
    for own, (expert, count) in zip(pairs.tolist(), tiles.tolist(), strict=True):
        assert 0 <= count <= tile
        assert all(flat[pair] == expert for pair in own[:count]), "a pair of another expert"
        numbers += own[:count]
    assert sorted(numbers) == list(range(len(flat)))


def compare_all() -> None:
    """In bfloat16 the shapes of real models, in float32 one that nothing divides."""
    device = torch.device("cuda", 0)
    compare(*SHAPES["qwen3-30b-a3b"], torch.bfloat16, device, (1, 3, 16, 64, 256, 700, 2500))
    compare(*SHAPES["mixtral"], torch.bfloat16, device, (1, 9, 130))
    compare(*SHAPES["gpt-oss"], torch.bfloat16, device, (1, 9, 130))
    compare(*SHAPES["uneven, clamped"], torch.float32, device, (1, 5, 70))
    compare(*SHAPES["uneven"], torch.bfloat16, device, (5, 70))
    compare(*SHAPES["uneven"], torch.float32, device, (1, 5, 70))

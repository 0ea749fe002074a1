"""How heads are kept on a GPU: turned in halves, whatever part of them positions turn. Needs no GPU."""

from pathlib import Path

import pytest
import torch

from axon.engine.cuda.rows import Rows
from axon.engine.cuda.weights.layers import head_order, load_layer, rope_table
from axon.engine.load.architecture import Architecture, read_architecture
from axon.engine.load.arranged import arranged
from axon.engine.load.weights import Weights
from axon.engine.pytorch.llama import _rope_table, _rotate
from tests.engine.checkpoints import make_checkpoint

CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=["phi3", "phi3, longrope"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("phi"), request.param)


def turn_halves(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turns each dimension of heads [row, head, dim] with the one half a head behind it, as the kernels do."""
    low, high = heads.chunk(2, -1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


def test_heads_in_their_order_see_what_plain_ones_see(folder: Path) -> None:
    architecture = read_architecture(folder)
    order = head_order(architecture)
    assert order is not None
    assert sorted(order.tolist()) == list(range(architecture.head_dim))
    queries, keys = torch.randn(2, 40, 3, architecture.head_dim, generator=torch.Generator().manual_seed(1))
    positions = torch.arange(40)
    cos, sin = (table[positions] for table in _rope_table(architecture, architecture.rope, queries))
    plain = (_rotate(queries, cos, sin) * _rotate(keys, cos, sin).flip(0)).sum(-1)
    cos, sin = (table[:40, None] for table in rope_table(architecture, architecture.rope, 64, CPU))
    ours = turn_halves(queries[..., order], cos, sin) * turn_halves(keys[..., order], cos, sin).flip(0)
    torch.testing.assert_close(ours.sum(-1), plain, rtol=1e-5, atol=1e-5)


def test_the_matrix_of_queries_and_keys_is_in_that_order_and_values_are_not(folder: Path) -> None:
    architecture = read_architecture(folder)
    with Weights(folder, torch.float32) as weights:
        source = arranged(weights, architecture)
        layer = load_layer(architecture, source, 0, CPU)  # type: ignore[arg-type]
        plain = source.take_stacked(f"model.layers.0.self_attn.{name}_proj.weight" for name in ("q", "k", "v"))
    order, turned = head_order(architecture), turned_outputs(architecture)
    heads = plain[:turned].view(-1, architecture.head_dim, architecture.hidden_size)
    assert isinstance(layer.qkv, Rows)
    assert torch.equal(layer.qkv.values[:turned], heads[:, order].reshape(turned, -1))
    assert torch.equal(layer.qkv.values[turned:], plain[turned:])


def turned_outputs(architecture: Architecture) -> int:
    return (architecture.num_heads + architecture.num_kv_heads) * architecture.head_dim

"""Which part of a model a rank has: the parts cover it, and an impossible split says what is possible."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.backend import choose_dtype
from axon.engine.config import EngineConfig
from axon.engine.engine import Engine
from axon.engine.load.architecture import Architecture, Experts, read_architecture
from axon.engine.load.arranged import Arranged, arranged
from axon.engine.load.rope import Rope
from axon.engine.load.weights import Weights
from axon.engine.parallel.partition import Share, refuse_impossible, working_sizes
from axon.engine.parallel.shards import Shards
from axon.errors import Misconfigured
from tests.engine.builders import RELATIVES, make_tiny_llama, with_config
from tests.engine.checkpoints import NEWER, make_checkpoint
from tests.engine.ranks.group import CUTTABLE

SMOLLM2 = Architecture(
    vocab_size=49152,
    hidden_size=576,
    intermediate_size=1536,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    rms_norm_eps=1e-5,
    rope=Rope(),
    tied_embedding=True,
    max_model_len=2048,
    eos_ids=frozenset({2}),
)
LLAMA_70B = replace(SMOLLM2, hidden_size=8192, intermediate_size=28672, num_heads=64, num_kv_heads=8, head_dim=128)


def test_the_sizes_that_work_are_those_that_divide_heads_and_mlp() -> None:
    assert working_sizes(SMOLLM2) == [1, 3]
    assert working_sizes(LLAMA_70B) == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("size", [2, 4, 9, 0])
def test_an_impossible_split_is_refused_with_the_sizes_that_work(size: int) -> None:
    with pytest.raises(Misconfigured, match="these sizes work: 1, 3" if size else "at least 1"):
        refuse_impossible(SMOLLM2, size)


def test_an_engine_refuses_it_before_it_starts_any_rank(tiny_llama: Path) -> None:
    with pytest.raises(Misconfigured, match=r"6 heads, 2 KV heads.*these sizes work: 1, 2"):
        Engine(with_config(tensor_parallel=4), tiny_llama)


@pytest.mark.parametrize("dtype", ["int8", "bfloat16"])
def test_several_ranks_on_a_cpu_compute_in_float32_alone(dtype: str) -> None:
    with pytest.raises(Misconfigured, match="float32 alone"):
        choose_dtype(EngineConfig(device="cpu", dtype=dtype, tensor_parallel=3), SMOLLM2)  # type: ignore[arg-type]
    assert choose_dtype(EngineConfig(device="cpu", tensor_parallel=3), SMOLLM2).dtype == "float32"


@given(st.sampled_from([SMOLLM2, LLAMA_70B]), st.data())
def test_every_query_head_is_somewhere_and_beside_its_kv_head(model: Architecture, data: st.DataObject) -> None:
    size = data.draw(st.sampled_from(working_sizes(model)))
    seen: list[int] = []
    for rank in range(size):
        share = Share(rank, size)
        heads, kv_heads = share.part(model.num_heads), share.kv_heads(model.num_kv_heads)
        local = share.of(model)
        assert (local.num_heads, local.num_kv_heads) == (len(heads), len(kv_heads))
        for index, head in enumerate(heads):
            assert kv_heads[index // local.group_size] == head // model.group_size
        seen += heads
    assert seen == list(range(model.num_heads))


@given(st.integers(1, 300), st.integers(1, 8))
def test_every_token_of_the_vocabulary_is_in_one_part(vocab_size: int, size: int) -> None:
    parts = [Share(rank, size).vocabulary(vocab_size) for rank in range(size)]
    assert [id for part in parts for id in part] == list(range(vocab_size))


class Counted:
    """Weights that count the numbers taken of each tensor."""

    def __init__(self, weights: Weights | Arranged) -> None:
        self._weights = weights
        self.taken: dict[str, int] = {}

    def take(self, name: str) -> torch.Tensor:
        return self._count(name, self._weights.take(name))

    def take_part(self, name: str, dim: int, start: int, stop: int) -> torch.Tensor:
        return self._count(name, self._weights.take_part(name, dim, start, stop))

    def _count(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        self.taken[name] = tensor.numel()
        return tensor


@pytest.mark.parametrize("name", [*RELATIVES, *NEWER])
def test_the_parts_of_all_ranks_are_the_model_and_no_rank_reads_more_than_its_own(name: str, tmp_path: Path) -> None:
    changes = CUTTABLE | {"num_key_value_heads": 4}
    if name in NEWER:
        folder = make_checkpoint(tmp_path / name, name, **changes)
    else:
        folder = make_tiny_llama(tmp_path / name, **RELATIVES[name] | changes)
    architecture = read_architecture(folder)
    with Weights(folder, torch.float32) as opened:
        weights = arranged(opened, architecture)
        counted = [Counted(weights) for _ in range(4)]
        shards = [Shards(each, architecture, Share(rank, 4)) for rank, each in enumerate(counted)]
        for tensor, shape in architecture.tensor_shapes().items():
            cut = Share(0, 4).cut(tensor, architecture)
            parts = [each.take(tensor) for each in shards]
            whole = weights.take(tensor)
            assert torch.equal(parts[0] if cut is None else torch.cat(parts, dim=cut.dim), whole), tensor
            share = 4 if cut else 1
            assert {each.taken[tensor] for each in counted} == {torch.Size(shape).numel() // share}, tensor


def test_experts_are_cut_along_their_inner_size_and_the_router_is_whole() -> None:
    experts = Experts(count=8, per_token=2, inner_size=6, normalises=True)
    model = replace(LLAMA_70B, experts=experts, dense_layers=frozenset({0}))
    assert Share(1, 2).of(model).experts == replace(experts, inner_size=3)
    assert Share(1, 2).cut("model.layers.1.mlp.experts.7.down_proj.weight", model) == (1, 3, 6, 3)
    assert Share(1, 2).cut("model.layers.0.mlp.down_proj.weight", model) == (1, 14336, 28672, 14336)
    assert Share(1, 2).cut("model.layers.1.mlp.gate.weight", model) is None
    assert working_sizes(model) == [1, 2]

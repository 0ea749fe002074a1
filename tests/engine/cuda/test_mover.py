"""The mover of the GPU's blocks, on tensors of the CPU: bytes go where they belong, whatever their type."""

import pytest
import torch

from axon.engine.copies import Copies, Load, Save
from axon.engine.cuda.memory.kv_memory import KVBlocks
from axon.engine.cuda.memory.mover import CudaMover
from axon.engine.load.architecture import read_architecture
from tests.engine.builders import make_tiny_llama


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn])
def test_blocks_go_to_slots_and_back(tmp_path_factory: pytest.TempPathFactory, dtype: torch.dtype) -> None:
    architecture = read_architecture(make_tiny_llama(tmp_path_factory.mktemp("models")))
    kv = KVBlocks(
        architecture,
        num_blocks=4,
        block_size=8,
        num_slots=1,
        table_width=4,
        dtype=dtype,
        device=torch.device("cpu"),
    )
    random = torch.rand(kv.tensor.shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    kv.tensor.copy_(random)
    mover = CudaMover(kv, 3)
    moving = mover.move(Copies(saves=(Save(1, 2), Save(3, 0))))
    moving.precede()
    moving.finish()
    block_bytes = kv.tensor[0].nbytes
    assert len(mover.memory) == 3 * block_bytes
    saved = torch.frombuffer(bytearray(mover.memory[2 * block_bytes :]), dtype=torch.uint8)
    assert torch.equal(saved, random[1].reshape(-1).view(torch.uint8))
    load = Load(id="a", arrival=0, admission=1, first=0, end=16, slots=(2, 0), block_ids=(0, 2))
    mover.move(Copies(loads=(load,))).finish()
    bits = kv.tensor.view(torch.uint8)
    expected = random.view(torch.uint8)
    assert torch.equal(bits[0], expected[1])
    assert torch.equal(bits[2], expected[3])
    assert torch.equal(bits[1], expected[1])

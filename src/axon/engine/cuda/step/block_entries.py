"""Enters blocks into the block tables by a kernel of their own, where a row has more than one new block."""

import numpy as np

from axon.engine.cuda.jit import launch
from axon.engine.cuda.memory.kv_memory import KVBlocks
from axon.engine.cuda.row_kernels import write_tables
from axon.engine.cuda.step.step_arrays import Packed
from axon.engine.cuda.step.transfer import send

_WIDTH = 256


def enter_blocks(kv: KVBlocks, packed: Packed) -> None:
    """Sends the new blocks of a step, and launches what writes them."""
    padding = [-1] * (-len(packed.new_places) % _WIDTH)
    arrays = {"places": packed.new_places + padding, "blocks": packed.new_blocks + padding}
    news = send({name: np.array(numbers, np.int32) for name, numbers in arrays.items()}, kv.tables.device)
    write_tables[(len(news["places"]) // _WIDTH,)](
        kv.tables, news["places"], news["blocks"], WIDTH=_WIDTH, **launch(num_warps=4)
    )

"""An engine's memory does not grow with the requests it has served; ``benchmarks/memory.py`` shows it at length."""

import gc
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.memory import Load, measure

from tests.engine.builders import TINY_CONFIG, open_engine, require_native, with_config
from tests.engine.shelf_engine import prefer_copies

KV_BYTES = {"float32": 100_000, "int8": 60_000}
"""About 16 blocks, which eight sequences do not fit into."""
NUM_REQUESTS = {"float32": 150, "int8": 400}


@pytest.mark.long
@pytest.mark.parametrize("has_shelf", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_memory_after_many_mixed_requests_is_that_after_the_first(
    dtype: str, has_shelf: bool, tiny_llama: Path, tmp_path: Path
) -> None:
    if dtype == "int8":
        require_native()
    config = with_config(dtype=dtype, block_size=16, kv_memory_bytes=KV_BYTES[dtype])
    shelf = {"kv_folder": str(tmp_path), "kv_folder_bytes": 20 * KV_BYTES[dtype]} if has_shelf else {}
    engine = open_engine(tiny_llama, config, **shelf)
    prefer_copies(engine)
    load = Load(TINY_CONFIG["vocab_size"], longest=60)
    before, after = measure(engine, load, first=50, total=NUM_REQUESTS[dtype])
    engine.close()
    assert after <= 1.05 * before
    assert min(load.num_aborted, load.num_refused) > 0, "a mixed load"


@pytest.mark.parametrize("has_shelf", [False, True])
def test_nothing_is_remembered_of_sequences_that_have_ended(has_shelf: bool, tiny_llama: Path) -> None:
    """Counted, because a few bytes a request would hide in a process's memory."""
    config = with_config(block_size=16, kv_memory_bytes=KV_BYTES["float32"])
    shelf = {"kv_host_bytes": KV_BYTES["float32"]} if has_shelf else {}  # full before it is looked at
    engine = open_engine(tiny_llama, config, **shelf)
    prefer_copies(engine)
    load = Load(TINY_CONFIG["vocab_size"], longest=60)
    counts = []
    for first in (0, 40, 80):
        load.run(engine, 40, first=first)
        gc.collect()
        counts.append(len(gc.get_objects()))
    # Once, something beside the engine may be made for good, such as a module's cache; a leak grows each time.
    assert min(after - before for before, after in pairwise(counts)) < 50
    assert not engine._scheduler._roster.by_id
    engine.close()

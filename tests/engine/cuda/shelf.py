"""Blocks that left a GPU and came back from pinned host memory or files, against an engine that never lost them."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from axon.engine.core import EngineCore
from tests.engine.shelf_engine import ask, ask_all, conversation, prefer_copies

LENGTH = 300
BLOCK = 64
FOUND = (LENGTH - 1) // BLOCK * BLOCK
NUM = 8
Open = Callable[..., EngineCore]


def compare(folder: Path, open_on: Open, *, few_bytes: int, is_exact: bool = True, **changes: Any) -> None:
    """Conversations one after the other, and all at once, with room for two of them on the device.

    Not ``is_exact``: a prompt in other chunks may be rounded otherwise, and only what was found is compared.
    """
    wide = {"block_size": BLOCK, "max_batch_tokens": 256, **changes}
    plain = open_on(folder, kv_memory_bytes=8 * few_bytes, **wide)
    talks = [conversation(number, LENGTH, max_tokens=8, ignore_eos=True) for number in range(NUM)]
    expected = [ask(plain, talk).token_ids for talk in talks]
    with tempfile.TemporaryDirectory() as files:
        for place in ({"kv_host_bytes": 16 * few_bytes}, {"kv_folder": files}):
            engine = open_on(folder, kv_memory_bytes=few_bytes, **wide, **place)
            prefer_copies(engine)
            try:
                first = [ask(engine, talk) for talk in talks]
                again = [ask(engine, talk) for talk in talks]
                at_once = ask_all(engine, talks)
                for answers in (first, again, [at_once[talk.id] for talk in talks]):
                    assert not is_exact or [answer.token_ids for answer in answers] == expected, place
                    found = 0 if answers is first else FOUND
                    assert [answer.num_cached for answer in answers] == [found] * NUM, place
            finally:
                engine.close()

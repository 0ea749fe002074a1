"""Sequences with a grammar beside others on a GPU, planned a step ahead: each as it is alone. Needs llguidance."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from llguidance import LLMatcher

from axon.engine.engine import Engine
from axon.engine.grammar.grammars import Grammars
from axon.engine.grammar.vocabulary import byte_vocabulary
from tests.engine.builders import make_add, run_to_end, with_config

REGEX = "[a-c]{3,9}(x|y[0-9]{2,4})z"
EOS_ID = 257


def compare(folder: Path, vocab_size: int, sampling: dict[str, Any], *, with_cpu: bool) -> None:
    """Masked rows among others, then each kind alone, replayed, and (``with_cpu``) on the CPU."""
    config: dict[str, Any] = {"block_size": 64, "max_batch_tokens": 256, "kv_memory_bytes": 1 << 26}
    gpu = open_engine(folder, vocab_size, device="cuda", **config)
    grammar = LLMatcher.grammar_from_regex(REGEX)
    free = [make_add(f"f{n}", prompt=[n] * 40, seed=n, max_tokens=24, ignore_eos=True, **sampling) for n in range(3)]
    bound = [
        make_add(f"g{n}", prompt=[n + 1, 2, 3], seed=n, max_tokens=24, grammar=grammar, **sampling) for n in range(5)
    ]
    together = run_to_end(gpu, [*free, *bound])
    assert {add.id: together[add.id] for add in free} == run_to_end(gpu, free), (sampling, "beside")
    for add in bound:
        ids = together[add.id]
        assert ids[-1] == EOS_ID, (sampling, ids)
        assert re.fullmatch(REGEX, bytes(ids[:-1]).decode()), (sampling, ids)
        assert run_to_end(gpu, [add])[add.id] == ids, (sampling, "alone")
        assert run_to_end(gpu, [replace(add, output_ids=ids[:3])])[add.id] == ids[3:], (sampling, "replayed")
    if with_cpu:
        ours = {add.id: together[add.id] for add in bound}
        assert run_to_end(open_engine(folder, vocab_size, device="cpu", **config), bound) == ours, (sampling, "CPU")


def open_engine(folder: Path, vocab_size: int, **config: Any) -> Engine:
    """An engine that reads single bytes: the folder has no tokenizer."""
    engine = Engine(with_config(**config), folder)
    engine._open_grammars = partial(Grammars, partial(byte_vocabulary, size=vocab_size, eos_id=EOS_ID))
    return engine

"""How the checks on a GPU drive an engine: folders, requests, the tokens of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from axon.engine.engine import Engine
from axon.engine.protocol.messages import Add, Emitted
from tests.engine.builders import make_add, with_config

SAMPLINGS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "warm": {"temperature": 0.8},
    "cut": {"temperature": 0.9, "top_k": 40, "top_p": 0.95},
    "min_p": {"temperature": 1.1, "min_p": 0.05, "top_p": 0.8},
    "penalised": {
        "temperature": 0.8,
        "min_p": 0.01,
        "repetition_penalty": 1.2,
        "presence_penalty": 0.4,
        "frequency_penalty": 0.3,
        "logit_bias": ((5, 1.0),),
        "logprobs": 2,
    },
}
Folders = Callable[[dict[str, Any]], Path]


def make_adds(count: int, sampling: dict[str, Any], *, max_prompt: int = 140, max_tokens: int = 12) -> list[Add]:
    random = np.random.default_rng(count)
    return [
        make_add(
            str(index),
            prompt=random.integers(0, 256, random.integers(1, max_prompt)).tolist(),
            max_tokens=max_tokens,
            seed=index,
            ignore_eos=True,
            **sampling,
        )
        for index in range(count)
    ]


def on_gpu(folder: Path, **changes: Any) -> Engine:
    return Engine(with_config(device="cuda", **changes), folder)


def on_cpu(folder: Path, **changes: Any) -> Engine:
    return Engine(with_config(device="cpu", **changes), folder)


def emit(engine: Engine, adds: list[Add]) -> list[Emitted]:
    for add in adds:
        engine.add(add)
    emitted: list[Emitted] = []
    while engine.has_work:
        emitted += engine.step().emitted
    return sorted(emitted, key=lambda each: int(each.id) if each.id.isdigit() else 0)

"""A following rank: computes its part of every step that the leading rank sends. Knows no scheduler."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from axon.engine.backend import open_backend
from axon.engine.batch import Batch
from axon.engine.load.architecture import read_architecture
from axon.engine.parallel.group import Store, TorchGroup
from axon.engine.parallel.partition import Share
from axon.engine.ranks.fingerprint import fingerprint
from axon.engine.ranks.leader import stay_local
from axon.engine.ranks.protocol import Begin
from axon.errors import Misconfigured


def open_follower(begin: Begin, meet: Callable[[], Store], *, gpu: int, model_dir: Path) -> Callable[[Batch], None]:
    """Loads this rank's part of the model; returns the function that computes its part of a step."""
    if fingerprint(model_dir) != begin.fingerprint:
        raise Misconfigured(f"the model in {model_dir} is not the one that the leading rank has")
    config = begin.config
    device = torch.device("cpu")
    if config.device == "cuda":
        device = torch.device("cuda", gpu % torch.cuda.device_count())
        torch.cuda.set_device(device)
    stay_local(config)
    group = TorchGroup(Share(begin.rank, config.tensor_parallel), device, meet, nccl=begin.nccl)
    architecture = read_architecture(model_dir)
    limit = min(config.max_model_len or architecture.max_model_len, architecture.max_model_len)
    backend = open_backend(config, model_dir, architecture, max_model_len=limit, group=group, device=device)
    if backend.launcher is None:
        runner: Any = backend.runner
        return lambda batch: runner.compute(batch)
    return _Flights(backend.launcher)


class _Flights:
    """Launches steps and waits for the one before: host buffers are reused a few steps later."""

    def __init__(self, launcher: Any) -> None:
        self._launcher = launcher
        self._flying: Any = None

    def __call__(self, batch: Batch) -> None:
        due, self._flying = self._flying, self._launcher.launch(batch)
        if due is not None:
            due.land()

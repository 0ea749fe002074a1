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
from axon.engine.runner import Mover, Moving
from axon.engine.shelf.opening import open_slots
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
    mover = open_slots(config, block_bytes=backend.block_bytes, open_mover=backend.open_mover)
    return _Steps(backend.runner, mover) if backend.launcher is None else _Flights(backend.launcher, mover)


class _Steps:
    """Copies blocks and computes steps at once."""

    def __init__(self, runner: Any, mover: Mover | None) -> None:
        self._runner, self._mover = runner, mover

    def __call__(self, batch: Batch) -> None:
        if batch.copies is not None and self._mover is not None:
            self._mover.move(batch.copies).finish()
        if batch.spans:
            self._runner.compute(batch)


class _Flights:
    """Launches steps and waits for the one before: host buffers are reused a few steps later. Copies of blocks run
    beside the step that follows them, and the one behind it waits for them."""

    def __init__(self, launcher: Any, mover: Mover | None) -> None:
        self._launcher, self._mover = launcher, mover
        self._flying: Any = None
        self._moving: Moving | None = None

    def __call__(self, batch: Batch) -> None:
        if batch.copies is not None and self._mover is not None:
            self._precede()  # the copies before, if no step came between
            self._moving = self._mover.move(batch.copies)
        if not batch.spans:
            return
        due, self._flying = self._flying, self._launcher.launch(batch)
        self._precede()
        if due is not None:
            due.land()

    def _precede(self) -> None:
        moving, self._moving = self._moving, None
        if moving is not None:
            moving.precede()

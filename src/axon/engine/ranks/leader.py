"""The leading rank: sends every step to the others, then computes its own part. Knows no scheduler."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from axon.engine.batch import Batch, Drawn
from axon.engine.config import EngineConfig
from axon.engine.copies import Copies
from axon.engine.parallel.partition import Share
from axon.engine.ranks.fingerprint import fingerprint
from axon.engine.runner import Flight, Launcher, Mover, Moving, Runner
from axon.errors import Misconfigured

if TYPE_CHECKING:
    from axon.engine.parallel.group import Group
    from axon.engine.ranks.crew import Crew

_SETTLE_S = 2.0


class Leader:
    """A runner, or launcher, that runs each batch on every rank of the group."""

    def __init__(self, crew: "Crew", runner: Runner, launcher: Launcher | None) -> None:
        self._crew = crew
        self._runner = runner
        self._launcher = launcher
        crew.be_strict()

    def run(self, batch: Batch) -> list[Drawn]:
        """Computes the batch together with the other ranks."""
        self._crew.tell(batch)
        try:
            return self._runner.run(batch)
        except RuntimeError:
            time.sleep(
                _SETTLE_S
            )  # a collective fails when a rank is lost: its link then ends this process, and says why
            raise

    def launch(self, batch: Batch) -> Flight:
        """Starts the batch on every rank."""
        assert self._launcher is not None, "asked only where batches are launched"
        self._crew.tell(batch)
        return self._launcher.launch(batch)


class LeadingMover:
    """Has every rank copy its part of each block."""

    def __init__(self, crew: "Crew", mover: Mover) -> None:
        self._crew, self._mover = crew, mover

    @property
    def memory(self) -> memoryview:
        return self._mover.memory

    def move(self, copies: Copies) -> Moving:
        """Begins the copies on every rank."""
        self._crew.tell_copies(copies)
        return self._mover.move(copies)


def open_group(config: EngineConfig, model_dir: Path) -> tuple["Crew | None", "Group | None"]:
    """Gathers the ranks that the settings ask for, none for one rank; raises ``Misconfigured`` if they do not come."""
    if config.tensor_parallel == 1:
        return None, None
    import torch

    from axon.engine.parallel.group import TorchGroup
    from axon.engine.ranks.crew import Crew  # a single engine needs no codec, which may not be installed

    if config.rendezvous and config.tensor_parallel % max(1, config.hosts):
        raise Misconfigured(
            f"{config.tensor_parallel} ranks (engine.tensor_parallel) cannot be spread equally over {config.hosts} "
            "hosts (engine.hosts)."
        )
    # Ranks that share a GPU, as on a test machine, cannot use NCCL.
    nccl = config.device == "cuda" and torch.cuda.device_count() >= config.num_local_ranks
    stay_local(config)
    crew = Crew(config)
    crew.open(model_dir, fingerprint(model_dir), nccl=nccl)
    device = torch.device("cuda", 0) if config.device == "cuda" else torch.device("cpu")
    return crew, TorchGroup(Share(0, config.tensor_parallel), device, crew.meet, nccl=nccl)


def stay_local(config: EngineConfig) -> None:
    """Binds Gloo to loopback for a group on one host, whatever the host's name resolves to."""
    if not config.rendezvous:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

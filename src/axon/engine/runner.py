"""The contract of what computes batches, synchronously or launched. Names no backend."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from axon.engine.batch import Batch, Drawn
from axon.engine.copies import Copies
from axon.engine.drafts import Drafts


class Runner(Protocol):
    """Computes a batch."""

    def run(self, batch: Batch) -> list[Drawn]:
        """Returns the result of each draw of the batch, in order; see ``axon.engine.sample.sampler``."""
        ...


class Flight(Protocol):
    """A batch that is being computed."""

    def land(self) -> list[Drawn]:
        """Waits until the batch is computed and returns the result of each of its draws, in order."""
        ...


class Launcher(Protocol):
    """Computes batches asynchronously, in the order of their launches."""

    def launch(self, batch: Batch) -> Flight:
        """Starts a batch; its placeholders stand for the tokens that the batch launched before it draws."""
        ...


class Moving(Protocol):
    """Copies of blocks that are being made."""

    def precede(self) -> None:
        """Has the steps that are launched from now on wait for them."""
        ...

    def finish(self) -> float:
        """Waits until they are done; returns the seconds that they took."""
        ...


@dataclass(frozen=True, slots=True)
class Moved:
    """Copies that were done at once."""

    seconds: float

    def precede(self) -> None:
        """Every step comes after them."""

    def finish(self) -> float:
        """The seconds that they took."""
        return self.seconds


class Mover(Protocol):
    """Copies blocks between the device and slots in the host's memory, in the order of calls and launches."""

    @property
    def memory(self) -> memoryview:
        """The bytes of all slots, one behind the other."""
        ...

    def move(self, copies: Copies) -> Moving:
        """Begins the copies of a step, before the step itself, which does not need them."""
        ...


class AdapterHost(Protocol):
    """Holds the LoRA adapters that a runner may be asked for, each by the digest that its spans name."""

    def read(self, folder: Path) -> tuple[Any, int]:
        """Reads an adapter, beside running steps; returns it as ``hold`` takes it, and its bytes in memory. Raises
        ``Misconfigured`` for one that the model cannot run."""
        ...

    def hold(self, digest: str, adapter: Any) -> None:
        """From now on steps may ask for it."""
        ...

    def drop(self, digest: str) -> None:
        """No step will ask for it any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftMemory:
    """Bytes that a draft model will take of its target's device."""

    fixed_bytes: int
    """Its weights, buffers and graphs."""
    block_bytes: int
    """Its KV block beside each block of the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A loaded model and what runs its batches."""

    runner: Runner
    num_blocks: int
    kernel: str
    launcher: Launcher | None = None
    """The runner again, where it computes asynchronously; else None."""
    later: Callable[[], bool] | None = None
    """Does a piece of what can wait until tokens flow, if there is any; returns whether more is left."""
    scores_any: bool = False
    """Whether a step may score any number of prompt tokens, because their logits are computed a few rows at a time."""
    block_bytes: int = 0
    """Bytes of a KV block over all layers."""
    open_mover: Callable[[int], Mover] | None = None
    """Makes so many slots in the host's memory, and what copies blocks to and from them; None if it has nothing that
    does."""
    adapters: AdapterHost | None = None
    """Where LoRA adapters are held; None if the backend computes none."""
    head: Drafts | None = None
    """The draft head that it was opened with."""

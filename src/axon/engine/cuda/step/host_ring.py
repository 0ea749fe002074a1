"""The host's buffers of steps, used in rotation: the inputs of decodes, and the tokens that were drawn.

At most two steps are in flight.
"""

from collections.abc import Callable

import numpy as np
import torch

from axon.engine.cuda.step.step_arrays import Array, Decodes

_SIZE = 4


class HostRing:
    """Sets of pinned buffers; ``turn`` takes the next one."""

    def __init__(self, decodes: Decodes, max_draws: int, device: torch.device) -> None:
        pinned = device.type == "cuda"
        self._staged = [torch.zeros(decodes.num_words, dtype=torch.int32, pin_memory=pinned) for _ in range(_SIZE)]
        self._views = [decodes.views(each.numpy(), np.float32, np.float64) for each in self._staged]
        self._fetched = [torch.zeros(max_draws, dtype=torch.int32, pin_memory=pinned) for _ in range(_SIZE)]
        self._events = [torch.cuda.Event() for _ in range(_SIZE)] if pinned else []  # type: ignore[no-untyped-call]
        self.index = 0
        """The set of the step that is being launched."""

    @property
    def staged(self) -> torch.Tensor:
        """The inputs of a step of decodes."""
        return self._staged[self.index]

    @property
    def views(self) -> dict[str, Array]:
        """The arrays in ``staged``."""
        return self._views[self.index]

    def turn(self) -> None:
        """Takes the next set."""
        self.index = (self.index + 1) % _SIZE

    def fetch(self, sampled: torch.Tensor, index: int) -> torch.Tensor:
        """Begins the copy of drawn tokens into a set."""
        fetched = self._fetched[index][: len(sampled)]
        fetched.copy_(sampled, non_blocking=True)
        return fetched

    def arrival(self, index: int) -> Callable[[], None]:
        """What waits until all that was launched so far is done."""
        if not self._events:
            return _already
        event = self._events[index]
        event.record()
        return event.synchronize


def _already() -> None:
    """Returns at once: on the CPU a step is done when it has been launched."""

"""A step that was launched on the device, until its tokens are on the host. Launches nothing itself."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from axon.engine.batch import Drawn


@dataclass(slots=True)
class CudaFlight:
    """A launched step; ``land`` waits for it."""

    finish: Callable[[], Callable[[], list[int]]]
    """Launches what is left of the step; returns a function that waits for the drawn tokens and returns them."""
    places: list[int]
    """Index of each draw's token among the drawn tokens, in the order of the batch."""
    from_host: dict[int, Drawn]
    """Draws made on the host, with their log probabilities, by the same index."""
    place_of: dict[int, int]
    """Index of a sequence's token among the drawn tokens, by the sequence's arrival."""
    _fetch: Callable[[], list[int]] | None = None
    _tokens: list[int] | None = None

    def launch_rest(self) -> None:
        """Launches what is left of the step, once."""
        if self._fetch is None:
            self._fetch = self.finish()

    def land(self) -> list[Drawn]:
        """The result of each draw of the batch, in order."""
        tokens = self._arrived()
        if not self.from_host:
            return [Drawn(tokens[place]) for place in self.places]
        return [self.from_host.get(place) or Drawn(tokens[place]) for place in self.places]

    def token_of(self, arrival: int) -> int:
        """The token that the step drew for a sequence."""
        return self._arrived()[self.place_of[arrival]]

    def _arrived(self) -> list[int]:
        self.launch_rest()
        if self._tokens is None:
            assert self._fetch is not None
            self._tokens = self._fetch()
        return self._tokens


def wait_for(tokens: torch.Tensor, arrived: Callable[[], None]) -> list[int]:
    """Waits for the copy of the tokens to the host by calling ``arrived``, and returns them."""
    arrived()
    numbers: list[int] = tokens.tolist()
    return numbers

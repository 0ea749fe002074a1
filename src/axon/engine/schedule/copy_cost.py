"""Decides by measured cost whether blocks are copied from the shelf or computed again. No I/O, no clock.

Both costs are running means of what was measured. Where one was never measured, blocks are copied: that measures it. A
cost that speaks against copying shrinks a little each time that it decides, so that one slow read is not believed for
ever.
"""

from dataclasses import dataclass

FIXED_S = 0.002
"""Seconds that a copy of any size takes on top: blocks come in between steps."""
_GAIN = 0.25
_RELENT = 0.97
_MANY_TOKENS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Measured seconds; None for what was not measured yet."""

    token_s: float | None = None
    """To compute one prompt token."""
    load_s: float | None = None
    """To copy one block from the host's memory to the device."""
    read_s: float | None = None
    """To read one block from a file into the host's memory."""


def is_worth_copying(costs: Costs, *, num_tokens: int, num_loads: int, num_reads: int) -> bool:
    """Whether ``num_loads`` blocks, of which ``num_reads`` are in files, come sooner than the tokens are computed."""
    if num_loads <= 0:
        return False
    if costs.token_s is None or costs.load_s is None or (num_reads and costs.read_s is None):
        return True
    copied_s = FIXED_S + num_loads * costs.load_s + num_reads * (costs.read_s or 0.0)
    return copied_s < num_tokens * costs.token_s


class CopyCosts:
    """The running means behind ``Costs``."""

    def __init__(self) -> None:
        self.costs = Costs()

    def computed(self, num_tokens: int, seconds: float) -> None:
        """Learns from a step of prompt tokens; from a short one, whose tokens are dear, less."""
        self._learn("token_s", num_tokens, seconds, weight=min(1.0, num_tokens / _MANY_TOKENS))

    def loaded(self, num_blocks: int, seconds: float) -> None:
        """Learns from copies into the device."""
        self._learn("load_s", num_blocks, seconds)

    def read(self, num_blocks: int, seconds: float) -> None:
        """Learns from reads of files."""
        self._learn("read_s", num_blocks, seconds)

    def prefers_copy(self, *, num_tokens: int, num_loads: int, num_reads: int) -> bool:
        """``is_worth_copying`` by what was measured."""
        return is_worth_copying(self.costs, num_tokens=num_tokens, num_loads=num_loads, num_reads=num_reads)

    def relent(self) -> None:
        """Copies were refused for their cost: the next ones count as a little cheaper."""
        costs = self.costs
        self.costs = Costs(token_s=costs.token_s, load_s=_relented(costs.load_s), read_s=_relented(costs.read_s))

    def _learn(self, name: str, count: int, seconds: float, weight: float = 1.0) -> None:
        if count <= 0 or seconds <= 0:
            return
        costs = {"token_s": self.costs.token_s, "load_s": self.costs.load_s, "read_s": self.costs.read_s}
        each_s, known = seconds / count, costs[name]
        costs[name] = each_s if known is None else known + weight * _GAIN * (each_s - known)
        self.costs = Costs(**costs)


def _relented(cost: float | None) -> float | None:
    return None if cost is None else cost * _RELENT

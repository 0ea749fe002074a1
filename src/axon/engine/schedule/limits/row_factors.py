"""Learns how many times its predicted time a draft adds to a step. Reads no clock.

A straight line through the times of steps says what a row costs. But kernels compute rows in groups: the first row of a
group is dear, the others cost little. So what drafts really add is measured for each number of streams.
"""

from dataclasses import dataclass

_GAIN = 0.1
"""Weight of a step in the averages."""
_DOUBT = 0.995
"""Factor on the belief in a measured cost with each step without drafts, so that drafts that were too dear are measured
again after some hundred steps."""
_FIRST_ROWS = 8
"""Rows that are taken to cost what is predicted before any is measured."""
_LEAST, _MOST = 0.2, 5.0
"""Bounds of a measured time against its prediction."""


@dataclass(slots=True)
class _Added:
    """What drafts have added to steps, in seconds; recent steps weigh most."""

    measured_s: float
    predicted_s: float

    @property
    def factor(self) -> float:
        return min(max(self.measured_s / self.predicted_s, _LEAST), _MOST)


class RowFactors:
    """The measured time of a draft over its predicted one, by the number of streams."""

    def __init__(self) -> None:
        self._scatter: dict[int, float] = {}
        """Average time of steps without drafts over its prediction, by the number of streams."""
        self._added: dict[int, _Added] = {}

    def factor(self, num_streams: int) -> float:
        """What the predicted price of a draft is to be multiplied by: a draft is dearer, and a step without drafts
        shorter, than predicted."""
        added = self._added.get(num_streams)
        return added.factor / self._scatter[num_streams] if added else 1.0

    def plain(self, num_streams: int) -> float | None:
        """Measured over predicted time of steps without drafts beside so many streams, an exponential moving average;
        None before the first."""
        return self._scatter.get(num_streams)

    def observe(self, num_streams: int, num_drafts: int, *, step_s: float, alone_s: float, row_s: float) -> None:
        """Takes in a step without prompt tokens. ``alone_s`` is its predicted time without drafts, ``row_s`` that of a
        draft."""
        scatter = self._scatter.get(num_streams)
        if not num_drafts:
            ratio = min(max(step_s / alone_s, _LEAST), _MOST)
            self._scatter[num_streams] = ratio if scatter is None else scatter + _GAIN * (ratio - scatter)
            if (added := self._added.get(num_streams)) is not None:
                added.measured_s = added.predicted_s * (1 + _DOUBT * (added.factor - 1))
        elif scatter is not None:
            added = self._added.setdefault(num_streams, _Added(_FIRST_ROWS * row_s, _FIRST_ROWS * row_s))
            predicted_s = num_drafts * row_s
            measured_s = min(max(step_s - scatter * alone_s, _LEAST * predicted_s), _MOST * predicted_s)
            added.measured_s += _GAIN * (measured_s - added.measured_s)
            added.predicted_s += _GAIN * (predicted_s - added.predicted_s)

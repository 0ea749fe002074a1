"""The daily wave: the load's mean at each quarter of an hour of the day, learned over days. Pure."""

from dataclasses import dataclass, replace

from axon.domain.scaling.finite import amount

_DAY_S = 86_400.0
_NUM_PARTS = 96
_GAIN = 0.3
"""How far a day moves the mean of its quarter of an hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Mean load by quarter of an hour (UTC); a part that was never seen says nothing."""

    loads: tuple[float, ...] = ()
    days: tuple[int, ...] = ()
    """How many days each part has seen."""
    part: int = -1
    """The part that is being gathered, with the sum and number of its samples."""
    total: float = 0.0
    num: int = 0

    def learn(self, at: float, load: float) -> "Wave":
        """The wave with one more sample; a part's mean is taken over when the next part begins."""
        part = _part(at)
        if part == self.part:
            return replace(self, total=self.total + amount(load), num=self.num + 1)
        return replace(self._closed(), part=part, total=amount(load), num=1)

    def growth(self, now: float, ahead_s: float) -> float:
        """The factor by which the wave says that the load rises until ``now + ahead_s``; at least 1."""
        here, there = self._load(now), self._load(now + ahead_s)
        return max(1.0, there / here) if here and there else 1.0

    def _load(self, at: float) -> float | None:
        """Between the middles of two parts the load is interpolated."""
        if not self.loads:
            return None
        place = (at % _DAY_S) / _DAY_S * _NUM_PARTS - 0.5
        first = int(place // 1) % _NUM_PARTS
        second, weight = (first + 1) % _NUM_PARTS, place - place // 1
        if not (self.days[first] and self.days[second]):
            return None
        return (1 - weight) * self.loads[first] + weight * self.loads[second]

    def _closed(self) -> "Wave":
        if self.part < 0 or self.num == 0:
            return self
        loads = list(self.loads or (0.0,) * _NUM_PARTS)
        days = list(self.days or (0,) * _NUM_PARTS)
        gain = _GAIN if days[self.part] else 1.0
        loads[self.part] += gain * (self.total / self.num - loads[self.part])
        days[self.part] = min(1000, days[self.part] + 1)
        return replace(self, loads=tuple(loads), days=tuple(days))


def _part(at: float) -> int:
    return int((at % _DAY_S) / _DAY_S * _NUM_PARTS) % _NUM_PARTS

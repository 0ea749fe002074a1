"""Reads a process's own metrics back as numbers. Declares none."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

_BUCKET = "_bucket"


class Reading:
    """The samples of some metrics at one moment, read once. Labels that a caller does not ask for are summed over."""

    def __init__(self, registry: CollectorRegistry, names: Iterable[str]) -> None:
        """``names`` are the metrics' full names, counters with ``_total``."""
        self._samples: dict[str, list[Sample]] = {}
        asked = [part for name in names for part in (name, f"{name}{_BUCKET}")]
        for metric in registry.restricted_registry(asked).collect():
            for sample in metric.samples:
                self._samples.setdefault(sample.name, []).append(sample)

    def total(self, name: str) -> float:
        """The sum over all labels; 0 for a metric without a sample."""
        return sum(sample.value for sample in self._samples.get(name, ()))

    def by(self, name: str, label: str) -> Mapping[str, float]:
        """The sums by one label; samples without it count under the empty string."""
        found: dict[str, float] = {}
        for sample in self._samples.get(name, ()):
            value = sample.labels.get(label, "")
            found[value] = found.get(value, 0.0) + sample.value
        return found

    def buckets(self, name: str) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """A histogram's upper bounds, and the count of each bucket alone, with one more for what is above them all."""
        cumulative = sorted((float(bound), count) for bound, count in self.by(f"{name}{_BUCKET}", "le").items())
        bounds = tuple(bound for bound, _ in cumulative[:-1])
        counts = [int(count) for _, count in cumulative]
        return bounds, (*counts[:1], *(high - low for low, high in pairwise(counts)))

"""Adds up the metrics of several processes that act as one server. Starts no process and asks none."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from axon.telemetry.metrics import Metrics

_START = "process_start_time_seconds"
_CREATED = "_created"
"""Suffix of the samples that tell since when a counter counts."""
_CUMULATIVE = ("counter", "histogram")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sample: its name, its labels sorted by name, its value."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric of one process, with all its samples."""

    name: str
    kind: str
    """Prometheus's type: counter, gauge, histogram or info."""
    documentation: str
    samples: tuple[Sample, ...]


Families = Sequence[Family]
"""All metrics of a process."""


def families_of(registry: CollectorRegistry) -> tuple[Family, ...]:
    """Reads a registry."""
    return tuple(
        Family(
            name=metric.name,
            kind=metric.type,
            documentation=metric.documentation,
            samples=tuple(
                Sample(name=each.name, labels=tuple(sorted(each.labels.items())), value=each.value)
                for each in metric.samples
            ),
        )
        for metric in registry.collect()
    )


def summed(processes: Iterable[Families]) -> tuple[Family, ...]:
    """The metrics of all processes together: each sample is the sum over the processes that have it.

    The exceptions: a time of start is the earliest one, and a gauge that all processes read of the same thing is the
    largest one.
    """
    found: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for family in (each for families in processes for each in families):
        found.setdefault(family.name, family)
        known = values.setdefault(family.name, {})
        for sample in family.samples:
            key = (sample.name, sample.labels)
            known[key] = _rule(family, sample.name)(known[key], sample.value) if key in known else sample.value
    return tuple(
        Family(
            name=name,
            kind=family.kind,
            documentation=family.documentation,
            samples=tuple(
                Sample(name=sample, labels=labels, value=value) for (sample, labels), value in values[name].items()
            ),
        )
        for name, family in found.items()
    )


def cumulative(families: Families) -> tuple[Family, ...]:
    """The metrics that only grow, which count on when their process has ended."""
    return tuple(each for each in families if each.kind in _CUMULATIVE)


class SummedMetrics(Collector):
    """Metrics of this process and of others, read at each scrape."""

    def __init__(self, own: CollectorRegistry, others: Callable[[], Sequence[Families]]) -> None:
        self._own, self._others = own, others

    def collect(self) -> Iterable[Metric]:
        for family in summed([families_of(self._own), *self._others()]):
            metric = Metric(family.name, family.documentation, family.kind)
            for sample in family.samples:
                metric.add_sample(sample.name, dict(sample.labels), sample.value)
            yield metric


@cache
def _same_in_all() -> frozenset[str]:
    """Gauges that every process reads of the same thing, or that tell a state: their maximum is shown, not their
    sum."""
    declared = Metrics("vllm").declared
    return frozenset({"process_max_fds", *(each.name for each in declared if each.together == "max")})


def _rule(family: Family, sample: str) -> Callable[[float, float], float]:
    """How two processes' values of a sample become one."""
    if sample.endswith(_CREATED) or sample == _START:
        return min
    if family.kind == "info" or sample in _same_in_all():
        return max
    return lambda one, other: one + other

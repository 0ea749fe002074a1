"""How a metric is declared: once, with its sentence, unit and labels, from which the page and the tests are made."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

Kind = Literal["counter", "gauge", "histogram", "info"]
Role = Literal["panel", "detail"]
Together = Literal["sum", "max"]

WORKER = ("model", "version", "worker", "zone")
"""Labels of what one worker reports of itself; a worker has one value of each."""
TURN = ("model", "version", "class")
"""Labels of what is measured on turns; ``class`` is the service tier."""
_UNITS = ("seconds", "bytes", "ratio", "tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One metric as it is declared."""

    name: str
    kind: Kind
    sentence: str
    unit: str
    """Seconds, bytes, tokens or ratio (0 to 1); otherwise what is counted."""
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets."""
    role: Role = "panel"
    """A ``panel`` metric is on a dashboard or in a rule; a ``detail`` is there for those who look closer."""
    together: Together = "sum"
    """How the values of several processes that act as one server become one."""
    subject: str = ""
    """The section of the page that it is in."""


class Declarations:
    """Makes metrics in one registry and remembers how each was declared."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._subject = ""
        self.all: list[Declared] = []

    def about(self, subject: str) -> "Declarations":
        """Begins a subject: metrics that are declared from now on belong to it."""
        self._subject = subject
        return self

    def counter(
        self,
        name: str,
        sentence: str,
        *labels: str,
        unit: str = "",
        role: Role = "panel",
        starts: Iterable[tuple[str, ...]] = (),
    ) -> Counter:
        """A number of events since the process began. ``starts`` are values of its labels that are shown as 0 from the
        start on: a rate does not see the first event of a series that it makes."""
        self._note(name, "counter", sentence, labels, unit=unit, role=role)
        made = Counter(name, sentence, labels, registry=self._registry)
        for values in starts:
            made.labels(*values)
        return made

    def gauge(
        self,
        name: str,
        sentence: str,
        *labels: str,
        unit: str = "",
        role: Role = "panel",
        together: Together = "sum",
    ) -> Gauge:
        """A present value."""
        self._note(name, "gauge", sentence, labels, unit=unit, role=role, together=together)
        return Gauge(name, sentence, labels, registry=self._registry)

    def histogram(
        self,
        name: str,
        sentence: str,
        buckets: tuple[float, ...],
        *labels: str,
        unit: str = "",
        role: Role = "panel",
        starts: Iterable[tuple[str, ...]] = (),
    ) -> Histogram:
        """A distribution, as numbers of values up to each bucket's bound; ``starts`` as for counters."""
        self._note(name, "histogram", sentence, labels, unit=unit, role=role, buckets=buckets)
        made = Histogram(name, sentence, labels, buckets=buckets, registry=self._registry)
        for values in starts:
            made.labels(*values)
        return made

    def note(self, declared: Declared) -> None:
        """Remembers a metric that is made elsewhere."""
        self.all.append(declared)

    def _note(
        self,
        name: str,
        kind: Kind,
        sentence: str,
        labels: tuple[str, ...],
        *,
        unit: str,
        role: Role,
        buckets: tuple[float, ...] = (),
        together: Together = "sum",
    ) -> None:
        self.all.append(
            Declared(
                name=name,
                kind=kind,
                sentence=sentence,
                unit=unit or _unit_in(name),
                labels=labels,
                buckets=buckets,
                role=role,
                together=together,
                subject=self._subject,
            )
        )


def _unit_in(name: str) -> str:
    """The unit that a metric's name ends with, before a counter's ``_total``; empty without one."""
    last = name.removesuffix("_total").rpartition("_")[2]
    return last if last in _UNITS else ""

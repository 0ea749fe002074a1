"""A span: a named stretch of time in a trace. A value, which the exporter makes OpenTelemetry's own of."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

Attribute = str | bool | int | float | tuple[str, ...]


class Kind(Enum):
    """The side of a call that a span stands for."""

    INTERNAL = "internal"
    SERVER = "server"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class Span(NamedTuple):
    """One span that has ended."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    """Empty for a root."""
    start: float
    """Unix time in seconds."""
    end: float
    attributes: Mapping[str, Attribute] = {}
    links: tuple[str, ...] = ()
    """Ids of spans of the same trace that this one follows."""
    error: str = ""
    """What went wrong, as a code; empty if nothing did."""
    kind: Kind = Kind.INTERNAL

    @property
    def seconds(self) -> float:
        return self.end - self.start

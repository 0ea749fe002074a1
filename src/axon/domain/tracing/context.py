"""Trace context (W3C): reading and writing ``traceparent``, the sampling decision, and ids that need no message.

The id of a turn's span follows from the turn's id, and that of an attempt's span from its epoch. So an attempt links to
the one before, and a gateway puts its span under the turn's, without either being told an id.
"""

import hashlib
import re
from dataclasses import dataclass

_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 1
_ALL = 2**64
MAX_STATE_CHARS = 512
"""A longer ``tracestate`` is dropped, as W3C allows."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The place of a turn in a trace."""

    trace_id: str
    """32 hex digits."""
    parent_id: str
    """16 hex digits: the span under which the turn's goes. The turn's own id means that the turn is the root."""
    sampled: bool

    @property
    def header(self) -> str:
        """The context as the value of a ``traceparent`` header."""
        return f"00-{self.trace_id}-{self.parent_id}-{int(self.sampled):02x}"


def read_context(header: str) -> TraceContext | None:
    """The context in a ``traceparent``; None if there is none, or one that W3C calls invalid."""
    found = _HEADER.fullmatch(header.strip()) if header else None
    if found is None:
        return None
    version, trace_id, parent_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not trace_id.strip("0") or not parent_id.strip("0"):
        return None
    return TraceContext(trace_id, parent_id, bool(int(flags, 16) & _SAMPLED))


def is_sampled(caller: TraceContext | None, trace_id: str, ratio: float) -> bool:
    """Whether a request is sampled by head: as its caller decided, or else by its trace id, so that every process that
    asks with the same ratio decides the same."""
    return caller.sampled if caller is not None else int(trace_id[16:], 16) < ratio * _ALL


def turn_span_id(turn_id: str) -> str:
    """The id of a turn's span."""
    return _digest(turn_id)


def attempt_span_id(turn_id: str, epoch: int) -> str:
    """The id of the span of the attempt at a turn that has this epoch."""
    return _digest(f"{turn_id}/{epoch}")


def step_span_id(parent_id: str, name: str) -> str:
    """The id of a step's span under a parent that has one step of this name."""
    return _digest(f"{parent_id}/{name}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

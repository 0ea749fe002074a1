"""One kind of log line: its name, levels, sentence and fields. Knows no logger."""

from dataclasses import dataclass

LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Event:
    """One kind of log line. Code writes it as ``_logger.warning("turn.orphaned", turn=...)``."""

    name: str
    levels: tuple[str, ...]
    says: str
    """The sentence that a line has as ``msg``."""
    fields: tuple[str, ...]
    """Names of the fields that a line may have beside the common ones."""


def event(name: str, levels: str, says: str, *fields: str) -> Event:
    """Makes an event; ``levels`` are separated by spaces."""
    return Event(name, tuple(levels.split()), says, fields)

"""A change of the registry: one row of its audit trail, which is written in the change's own transaction."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Who changed what, and when."""

    number: int
    """The registry's revision after the change: changes are numbered without gaps."""
    at: float
    actor: str
    """Id of the key, or ``control`` for the leader of control, or ``cli`` for a command on the store itself."""
    kind: str
    """The kind of record: ``model``, ``version``, ``deployment``, ``alias``, ``price`` or ``adapter``."""
    name: str
    action: str
    """``add``, ``change`` or ``remove``."""
    before: str = ""
    """The record before as JSON; empty for one that was added."""
    after: str = ""

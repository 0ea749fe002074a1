"""An entry of the audit trail: one change that an administrator made, who made it, and what it was before and after.

No I/O; holds no secret, because the records that it is made of have none.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from axon.domain.ids import new_id

PREFIX = "aud_"
MOST_NAME_CHARS = 256
_LONGEST_VALUE = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """Who changed what, and when."""

    id: str
    """Begins with ``aud_``; the entry of a change of the registry has the number of that change instead."""
    at: float
    actor: str
    """Id of the key, with the person behind it where one signed in by name; ``cli`` for a command on the store itself,
    ``server`` for what a start makes, ``control`` or ``worker …`` for what they did by themselves."""
    kind: str
    """The kind of record: ``tenant``, ``plan``, ``key`` or ``worker``, or one of the registry's."""
    name: str
    action: str
    """``add``, ``change`` or ``remove``; also ``suspend``, ``resume``, ``rotate``, ``revoke`` and ``drain``."""
    before: str = ""
    """The record before as JSON; empty for one that was added."""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Some entries, the newest first."""

    entries: Sequence[AuditEntry]
    has_more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field that differs between two records, by its path, such as ``limits.weight``."""

    path: str
    before: object
    after: object

    def words(self) -> str:
        """The difference on one line."""
        return f"{self.path}: {_shown(self.before)} → {_shown(self.after)}"


def new_entry(
    *,
    at: float,
    actor: str,
    kind: str,
    name: str,
    action: str,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> AuditEntry:
    """Makes an entry with a new id."""
    return AuditEntry(
        id=new_id(PREFIX, at),
        at=at,
        actor=actor,
        kind=kind,
        name=name[:MOST_NAME_CHARS],
        action=action,
        before=_json(before),
        after=_json(after),
    )


def differences(before: object, after: object, path: str = "") -> list[Difference]:
    """Returns the fields that differ between two records, one by one. A record that is not there counts as empty."""
    if before == after:
        return []
    if isinstance(before, Mapping | None) and isinstance(after, Mapping | None):
        old, new = before or {}, after or {}
        return [
            found
            for name in sorted({*old, *new})
            for found in differences(old.get(name), new.get(name), f"{path}.{name}" if path else str(name))
        ]
    return [Difference(path=path, before=before, after=after)]


def _json(record: Mapping[str, object] | None) -> str:
    return "" if record is None else json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _shown(value: object) -> str:
    text = "–" if value in (None, "") else value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"

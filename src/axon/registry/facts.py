"""Records of the registry as the admin API and the command line show them: plain JSON. Knows neither of the two."""

import json
from collections.abc import Callable, Mapping

import msgspec

from axon.domain.registry.change import Change
from axon.domain.registry.record import Record, kind_of, name_of

Facts = dict[str, object]
_OBJECTS: Mapping[str, str] = {"version": "model.version"}


def facts_of(record: Record) -> Facts:
    """A record's JSON; ``revision`` is what a change of it must name."""
    kind = kind_of(record)
    fields = _builtins(record)
    created = fields.pop("created", None)
    fields.pop("name", None)
    head: Facts = {"id": name_of(record), "object": _OBJECTS.get(kind, kind)}
    return {**head, **fields, **({} if created is None else {"created_at": _second(created)})}


def change_facts(change: Change) -> Facts:
    """The JSON of one row of the audit trail."""
    return {
        "id": str(change.number),
        "object": "registry.change",
        "at": _second(change.at),
        "actor": change.actor,
        "kind": change.kind,
        "name": change.name,
        "action": change.action,
        "before": json.loads(change.before) if change.before else None,
        "after": json.loads(change.after) if change.after else None,
    }


def _builtins(record: Record) -> Facts:
    convert: Callable[[object], Facts] = msgspec.to_builtins
    return convert(record)


def _second(at: object) -> int:
    """A time in whole seconds, as OpenAI's API has them."""
    assert isinstance(at, float | int)
    return int(at)

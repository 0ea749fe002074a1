"""A record of the registry, whatever its kind, and its row: how it is written down. Knows no database."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from axon.domain.registry.adapter import Adapter
from axon.domain.registry.deployment import Alias, Deployment
from axon.domain.registry.model import Model
from axon.domain.registry.price import Price
from axon.domain.registry.snapshot import Snapshot
from axon.domain.registry.version import Version
from axon.errors import DependencyDown

Record = Model | Version | Deployment | Alias | Price | Adapter
Edit = tuple[Record | None, Record | None]
"""A record before and after: the first is None for one that is added, the second for one that is removed."""
_R = TypeVar("_R", Model, Version, Deployment, Alias, Price, Adapter)

KINDS: Mapping[str, type[Record]] = {
    "model": Model,
    "version": Version,
    "deployment": Deployment,
    "alias": Alias,
    "price": Price,
    "adapter": Adapter,
}
_NAMES: Mapping[type[Record], str] = {kind: name for name, kind in KINDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A record as the store keeps it."""

    kind: str
    name: str
    revision: int
    body: str
    """The record as JSON, with every field."""


def kind_of(record: Record) -> str:
    """The name of a record's kind."""
    return _NAMES[type(record)]


def name_of(record: Record) -> str:
    """A record's name, unique among those of its kind; a version's, a price's and an adapter's is its id."""
    return record.id if isinstance(record, Version | Price | Adapter) else record.name


def row_of(record: Record) -> Row:
    """A record's row."""
    body = msgspec.json.encode(record).decode()
    return Row(kind=kind_of(record), name=name_of(record), revision=record.revision, body=body)


def record_of(row: Row) -> Record:
    """A row's record, without the fields of a later release; the row's revision holds."""
    try:
        record: Record = msgspec.json.decode(row.body, type=KINDS[row.kind])
    except (msgspec.DecodeError, KeyError) as error:
        raise DependencyDown(f"The {row.kind} {row.name} cannot be read.", code="record_unreadable") from error
    return replace(record, revision=row.revision)


def snapshot_of(revision: int, rows: Iterable[Row]) -> Snapshot:
    """The registry that these rows make up; records of a kind that a later release has added are left out."""
    found: list[Record] = [record_of(row) for row in rows if row.kind in KINDS]
    prices = sorted(_only(Price, found), key=lambda price: (price.since, price.id))
    return Snapshot(
        revision=revision,
        models=_by_name(Model, found, name_of),
        versions=_by_name(Version, found, name_of),
        deployments=_by_name(Deployment, found, name_of),
        aliases=_by_name(Alias, found, name_of),
        prices=tuple(prices),
        adapters=_by_name(Adapter, found, name_of),
    )


def is_unchanged(old: Record | None, stored: int | None) -> bool:
    """Whether a change that was made from ``old`` may be written over the stored record: its revision is the same, or
    there was none and is none."""
    return (old and old.revision) == stored


def kept(stored: str, new: str) -> str:
    """The body ``new`` with the fields that only a later release knows, as they are in the stored body.

    Fields are kept in the record itself and in the objects in it that are still the same, by their id or version.
    """
    merged = _merged(msgspec.json.decode(stored), msgspec.json.decode(new))
    return msgspec.json.encode(merged).decode()


def _merged(stored: Any, new: Any) -> Any:
    if isinstance(stored, dict) and isinstance(new, dict) and _identity(stored) == _identity(new):
        known = {name: _merged(stored[name], value) if name in stored else value for name, value in new.items()}
        return {**known, **{name: value for name, value in stored.items() if name not in new}}
    if isinstance(stored, list) and isinstance(new, list):
        before = {_identity(each): each for each in stored if isinstance(each, dict)}
        return [_merged(before.get(_identity(each)), each) if isinstance(each, dict) else each for each in new]
    return new


def _identity(thing: Mapping[str, Any]) -> Any:
    return thing.get("id") or thing.get("version")


def _only(kind: type[_R], records: Iterable[Record]) -> list[_R]:
    return [each for each in records if isinstance(each, kind)]


def _by_name(kind: type[_R], records: Iterable[Record], name: Callable[[_R], str]) -> dict[str, _R]:
    return {name(each): each for each in sorted(_only(kind, records), key=name)}

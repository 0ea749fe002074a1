"""Entries of the audit trail, and what differs between two records."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.audit import Difference, differences, new_entry

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
RECORDS = st.dictionaries(
    st.text("abc", min_size=1, max_size=2),
    st.recursive(LEAVES, lambda inner: st.dictionaries(st.text("xy", min_size=1, max_size=1), inner, max_size=2)),
    max_size=4,
)


def test_an_entry_keeps_its_records_as_json_and_bounds_its_name() -> None:
    entry = new_entry(at=5.0, actor="cli", kind="plan", name="x" * 999, action="add", after={"limits": {"weight": 2.0}})
    assert (entry.before, json.loads(entry.after)) == ("", {"limits": {"weight": 2.0}})
    assert len(entry.name) == 256
    assert entry.id.startswith("aud_")


def test_a_difference_names_its_field_by_its_path_in_short() -> None:
    found = differences({"limits": {"weight": 1}, "name": "a"}, {"limits": {"weight": 2}, "name": "a"})
    assert found == [Difference(path="limits.weight", before=1, after=2)]
    assert found[0].words() == "limits.weight: 1 → 2"
    assert differences(None, {"name": "Acme"})[0].words() == "name: – → Acme"
    assert len(Difference(path="a", before="x" * 999, after=None).words()) < 200


@given(RECORDS)
def test_a_record_does_not_differ_from_itself(record: dict[str, Any]) -> None:
    assert differences(record, record) == []


@given(RECORDS, RECORDS)
def test_the_differences_make_the_one_record_of_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    found = differences(before, after)
    assert bool(found) == (_flat(before) != _flat(after))
    changed = dict(_flat(before))
    for each in found:
        for path in [path for path in changed if path == each.path or path.startswith(f"{each.path}.")]:
            del changed[path]
        changed.update(_flat(each.after, each.path) if isinstance(each.after, dict) else _leaf(each))
    assert changed == _flat(after)


def _leaf(each: Difference) -> dict[str, object]:
    return {} if each.after is None else {each.path: each.after}


def _flat(value: Any, path: str = "") -> dict[str, object]:
    """The leaves of a record by their paths, without those that are none."""
    if isinstance(value, dict):
        return {
            name: leaf
            for key, inner in value.items()
            for name, leaf in _flat(inner, f"{path}.{key}" if path else key).items()
        }
    return {} if value is None else {path: value}

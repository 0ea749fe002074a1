"""Records become rows and come back; what only a later release knows survives a change by this one."""

import json
from dataclasses import replace

import pytest

from axon.domain.registry.deployment import Alias
from axon.domain.registry.model import Model
from axon.domain.registry.price import Price
from axon.domain.registry.record import Record, Row, kept, record_of, row_of, snapshot_of
from axon.errors import DependencyDown
from tests.domain.registry.builders import deployment, rollout, version

RECORDS: list[tuple[Record, str, str]] = [
    (Model(name="small", created=1.0), "model", "small"),
    (version(), "version", "small@v1"),
    (deployment(going=rollout()), "deployment", "small"),
    (Alias(name="best", deployment="small", created=1.0), "alias", "best"),
    (Price(id="price_1", model="small", since=1.0), "price", "price_1"),
]


@pytest.mark.parametrize(("record", "kind", "name"), RECORDS)
def test_a_record_is_its_rows_record(record: Record, kind: str, name: str) -> None:
    row = row_of(replace(record, revision=7))
    assert (row.kind, row.name, row.revision) == (kind, name, 7)
    assert record_of(row) == replace(record, revision=7)


def test_fields_and_kinds_of_a_later_release_are_passed_over() -> None:
    row = row_of(Model(name="small", created=1.0))
    later = replace(row, body=json.dumps({**json.loads(row.body), "colour": "red"}))
    unknown = Row(kind="guardrail", name="polite", revision=2, body="{}")
    assert snapshot_of(9, [later, unknown]) == snapshot_of(9, [row])


@pytest.mark.parametrize("body", ["", "[]", '{"name": 5}', '{"name": "small", "created": 1, "capabilities": ["fly"]}'])
def test_a_body_that_cannot_be_read_is_told_by_its_name(body: str) -> None:
    with pytest.raises(DependencyDown, match="The model small cannot be read") as failure:
        record_of(Row(kind="model", name="small", revision=1, body=body))
    assert failure.value.code == "record_unreadable"


def with_more(body: str) -> str:
    """A deployment's body as a later release might write it: a field more in the record and in every object in it."""
    known = json.loads(body)
    members = [{**each, "more": each["version"]} for each in known["members"]]
    rolling = known["rollout"] and {**known["rollout"], "more": "rollout"}
    return json.dumps({**known, "more": ["x"], "members": members, "rollout": rolling})


def test_a_change_keeps_what_only_a_later_release_knows() -> None:
    old = deployment(going=rollout())
    first, second = old.members
    new = replace(old, max_replicas=4, members=(second, first), rollout=replace(rollout(), step=0, reason="slow"))
    merged = kept(with_more(row_of(old).body), row_of(new).body)
    assert json.loads(merged) == json.loads(with_more(row_of(new).body))


def test_what_was_known_of_another_rollout_or_member_is_not_kept() -> None:
    old = deployment(going=rollout())
    new = replace(old, members=(replace(old.members[0], version="small@v9"),), rollout=replace(rollout(), id="ro_2"))
    merged = json.loads(kept(with_more(row_of(old).body), row_of(new).body))
    assert merged["more"] == ["x"]
    assert "more" not in merged["rollout"]
    assert ["more" in each for each in merged["members"]] == [False]
    without = json.loads(kept(with_more(row_of(old).body), row_of(replace(old, rollout=None)).body))
    assert without["rollout"] is None

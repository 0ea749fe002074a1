"""The table of events and the calls of loggers name the same events, levels and fields."""

import pytest

from axon.telemetry.events import EVENTS, ROOMS
from axon.telemetry.events.event import LEVELS
from axon.telemetry.events.fields import COMMON, FIELDS
from axon.telemetry.redact import HIDDEN, clean_named
from tests.telemetry.logger_calls import Odd, Said, calls

EVERYWHERE = frozenset(each.name for each in COMMON)
FORWARDED = {
    "admin.": frozenset({"by_key", "by_tenant"}),
    "rollout.": frozenset({"deployment", "version", "share", "state"}),
    "version.": frozenset({"deployment", "version", "share", "state"}),
}
"""Fields that a function which writes events adds to those that it is given."""
ADDED_LATER = {"admin.rollout_": frozenset({"deployment", "reason"})}


@pytest.fixture(scope="module")
def found() -> list[Said | Odd]:
    """Read by whoever runs these tests, not by every process that only collects them."""
    return list(calls())


@pytest.fixture(scope="module")
def said(found: list[Said | Odd]) -> list[Said]:
    return [each for each in found if isinstance(each, Said)]


def _written(said: Said) -> frozenset[str]:
    if said.level is not None:
        return said.fields
    tables = (FORWARDED, {} if said.fields else ADDED_LATER)
    more = [fields for table in tables for begins, fields in table.items() if said.event.startswith(begins)]
    return said.fields.union(*more)


def test_every_call_of_a_logger_can_be_read(found: list[Said | Odd], said: list[Said]) -> None:
    assert [each for each in found if isinstance(each, Odd)] == []
    assert len(said) > 100, "the calls are found at all"


def test_every_call_names_an_event_of_the_table_by_one_of_its_levels(said: list[Said]) -> None:
    wrong = [
        each for each in said if each.event not in EVENTS or (each.level or "info") not in (*EVENTS[each.event].levels,)
    ]
    assert [each for each in wrong if each.event != "rollout.aborted"] == []


def test_every_call_has_only_fields_of_its_event(said: list[Said]) -> None:
    wrong = {
        f"{each.where} {each.event}": beyond
        for each in said
        if (beyond := _written(each) - EVERYWHERE - frozenset(EVENTS[each.event].fields))
    }
    assert wrong == {}


def test_every_event_of_the_table_is_written_somewhere_with_each_of_its_fields(said: list[Said]) -> None:
    written: dict[str, set[str]] = {}
    levels: dict[str, set[str]] = {}
    for each in said:
        written.setdefault(each.event, set()).update(_written(each))
        levels.setdefault(each.event, set()).update({each.level} if each.level else EVENTS[each.event].levels)
    assert set(EVENTS) - set(written) == set()
    unused = {name: missing for name, event in EVENTS.items() if (missing := set(event.fields) - written[name])}
    assert unused == {}
    assert {name: set(event.levels) for name, event in EVENTS.items()} == levels


def test_every_field_is_declared_once_and_used() -> None:
    used = {name for event in EVENTS.values() for name in event.fields}
    assert used <= set(FIELDS)
    assert set(FIELDS) - used - EVERYWHERE == set()
    assert used & EVERYWHERE == set(), "a common field needs no mention"
    assert len(EVENTS) == sum(map(len, ROOMS.values())), "a name is used once"


@pytest.mark.parametrize("event", EVENTS.values(), ids=lambda event: event.name)
def test_an_event_is_well_formed(event: object) -> None:
    from axon.telemetry.events.event import Event

    assert isinstance(event, Event)
    assert event.name.replace(".", "").replace("_", "").islower()
    assert event.name.count(".") == 1
    assert event.levels
    assert set(event.levels) <= set(LEVELS)
    assert event.says.endswith(".")
    assert event.says[0].isupper()


def test_no_field_has_a_name_that_redaction_would_hide() -> None:
    assert [name for name in FIELDS if clean_named(name, "x") == HIDDEN] == []

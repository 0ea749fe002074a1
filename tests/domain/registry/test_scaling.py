"""Minimums by the clock and the ceiling in cost of a deployment, and that they survive being written down."""

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec

from axon.domain.registry.deployment import Deployment
from axon.domain.registry.record import record_of, row_of
from axon.domain.registry.scaling import Scaling, Window

SMALL = Deployment(name="small", model="small", created=1.0, max_replicas=20)
BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def held(window: Window, *moments: str) -> list[bool]:
    return [window.holds(at(moment)) for moment in moments]


def test_a_window_follows_local_time_also_through_summer_time() -> None:
    office = Window(replicas=4, start="08:00", end="20:00", zone="Europe/Berlin")
    for day in ("2026-01-15", "2026-07-15"):
        assert held(office, f"{day}T07:59", f"{day}T08:00", f"{day}T19:59", f"{day}T20:00") == [
            False,
            True,
            True,
            False,
        ]


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    night = Window(replicas=2, start="22:00", end="06:00", days=("fri",), zone="Europe/Berlin")
    friday, saturday, sunday = "2026-07-17", "2026-07-18", "2026-07-19"
    assert held(night, f"{friday}T21:59", f"{friday}T22:00", f"{saturday}T05:59", f"{saturday}T06:00") == [
        False,
        True,
        True,
        False,
    ]
    assert held(night, f"{friday}T03:00", f"{saturday}T23:00", f"{sunday}T03:00") == [False, False, False]


def test_a_whole_day_has_no_gap_and_an_unknown_zone_always_holds() -> None:
    assert held(Window(replicas=1), "2026-07-17T00:00", "2026-07-17T23:59") == [True, True]
    assert Window(replicas=1, start="08:00", end="09:00", zone="Nowhere/At_all").holds(0.0)
    assert not Window(replicas=1).holds(float("nan"))


def test_the_largest_minimum_that_holds_counts() -> None:
    floors = (Window(replicas=3), Window(replicas=5, start="10:00", end="12:00"))
    found = replace(SMALL, min_replicas=4, scaling=Scaling(floors=floors))
    assert found.least_replicas(at("2026-07-17T11:00", ZoneInfo("UTC"))) == 5
    assert found.least_replicas(at("2026-07-17T13:00", ZoneInfo("UTC"))) == 4


def test_the_ceiling_in_cost_is_counted_in_replicas_without_errors_of_rounding() -> None:
    assert replace(SMALL, scaling=Scaling(price_per_h=2.5, cost_per_h=26.0)).most_replicas == 10
    assert replace(SMALL, scaling=Scaling(price_per_h=0.1, cost_per_h=0.3)).most_replicas == 3
    assert replace(SMALL, scaling=Scaling(price_per_h=0.01, cost_per_h=1e9)).most_replicas == 20
    assert replace(SMALL, scaling=Scaling(price_per_h=2.5)).most_replicas == 20


def test_a_record_is_read_as_it_was_written_and_one_from_before_has_no_aims_of_its_own() -> None:
    floors = (Window(replicas=3, days=("mon", "tue"), zone="Europe/Berlin"),)
    scaled = replace(SMALL, scaling=Scaling(utilisation=0.6, floors=floors))
    row = row_of(scaled)
    assert record_of(row) == scaled
    old = msgspec.json.decode(row.body)
    del old["scaling"]
    assert record_of(replace(row, body=msgspec.json.encode(old).decode())) == SMALL

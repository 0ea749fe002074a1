"""A live fleet under a real Prometheus: no panel is empty, no rule is blind, and every alert fires by its fault.

The rules are those that are shipped, at 1/120 of their length: an hour is half a minute.
"""

from collections.abc import Iterator
from contextlib import suppress

import pytest

from axon.monitoring.boards import DASHBOARDS
from axon.monitoring.rules import ALERTS, RECORDINGS
from axon.monitoring.times import filled
from tests.journeys.server import wait_until
from tests.long import whole
from tests.monitoring.exercise import everything
from tests.monitoring.faults import QUICK, SLOW, TIMED, Fault
from tests.monitoring.scene import PATIENCE_S, Scene, watched_fleet
from tests.monitoring.shown import empty

FACTOR = 1 / 120
PANELS = [panel for board in DASHBOARDS for panel in board.panels]

pytestmark = [
    pytest.mark.services,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not whole(), reason="it takes six minutes on two busy cores: only make test-long"),
]


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """One fleet for all of them, which has done one of everything."""
    with watched_fleet(factor=FACTOR) as scene:
        everything(scene)
        yield scene


@pytest.mark.long("panels")
def test_every_panel_and_every_rule_has_a_series(scene: Scene) -> None:
    prometheus = scene.prometheus
    left = list(PANELS)

    def all_shown() -> bool:
        left[:] = [panel for panel in left if empty(prometheus, [panel])]
        return not left

    with suppress(AssertionError):  # the next line says which
        wait_until(all_shown, "every panel has a series", PATIENCE_S)
    assert empty(prometheus, left) == []
    watched = [filled(alert.watch, FACTOR) for alert in ALERTS]
    names = [recording.name for recording in RECORDINGS]
    assert [expression for expression in (*watched, *names) if not prometheus.query(expression)] == []
    assert prometheus.broken_rules() == {}


def check(scene: Scene, fault: Fault) -> None:
    """Its alerts fire while it lasts, and stop when it is mended."""
    with fault.breaks(scene):
        unfired = scene.unfired(*fault.alerts)
    assert unfired == set()
    scene.wait_quiet(*fault.alerts)


@pytest.mark.long("quick alerts")
@pytest.mark.parametrize("fault", QUICK, ids=lambda each: each.name)
def test_an_alert_fires_by_its_fault_and_stops_when_it_is_mended(scene: Scene, fault: Fault) -> None:
    check(scene, fault)


@pytest.mark.long("alerts")
@pytest.mark.parametrize("fault", SLOW, ids=lambda each: each.name)
def test_so_do_the_others(scene: Scene, fault: Fault) -> None:
    check(scene, fault)


@pytest.mark.long("timed alerts")
@pytest.mark.parametrize("fault", TIMED, ids=lambda each: each.name)
def test_and_those_on_times(scene: Scene, fault: Fault) -> None:
    check(scene, fault)

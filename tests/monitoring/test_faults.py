"""The faults that alerts are fired by."""

from axon.monitoring.rules import alert_names
from tests.monitoring.faults import QUICK, SLOW, TIMED


def test_every_alert_has_a_fault() -> None:
    assert {alert for fault in (*QUICK, *SLOW, *TIMED) for alert in fault.alerts} == set(alert_names())

"""Every metric is looked at somewhere, and everything that is looked at is a metric."""

from axon.monitoring.boards import DASHBOARDS
from axon.monitoring.names import metrics_in
from axon.monitoring.rules import ALERTS, RECORDINGS
from axon.telemetry.metrics import Metrics

OF_THE_LIBRARY = {"process_cpu_seconds_total", "process_resident_memory_bytes"}
"""What the library measures of every process, on Linux."""

EXPRESSIONS = (
    *(query.expr for board in DASHBOARDS for panel in board.panels for query in panel.queries),
    *(alert.condition for alert in ALERTS),
    *(recording.expr for recording in RECORDINGS),
)
READ = set().union(*map(metrics_in, EXPRESSIONS))
ROLES = {each.name: each.role for each in Metrics().declared}


def test_every_metric_is_on_a_panel_or_in_a_rule_unless_it_is_a_detail() -> None:
    assert {name for name, role in ROLES.items() if role == "panel"} - READ == set()


def test_no_detail_is_on_a_panel_or_in_a_rule() -> None:
    assert {name for name, role in ROLES.items() if role == "detail"} & READ == set()


def test_everything_that_panels_and_rules_read_is_a_metric() -> None:
    assert READ - ROLES.keys() - OF_THE_LIBRARY == {each.name for each in RECORDINGS}

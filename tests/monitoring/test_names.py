"""Names of metrics in expressions."""

import pytest

from axon.monitoring.names import metrics_in


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('sum by (model) (rate(axon_requests_total{outcome=~"5.."}[5m]))', {"axon_requests_total"}),
        ("histogram_quantile(0.5, sum by (le) (rate(axon_step_seconds_bucket[1m])))", {"axon_step_seconds"}),
        ("axon:turns_errors:ratio_rate5m > 0.1 and axon_leads", {"axon:turns_errors:ratio_rate5m", "axon_leads"}),
        ('count(ALERTS{alertname=~"axon_x.*"})', set()),
        ("process_cpu_seconds_total / up", {"process_cpu_seconds_total"}),
    ],
)
def test_an_expression_names_its_metrics(expression: str, names: set[str]) -> None:
    assert metrics_in(expression) == names

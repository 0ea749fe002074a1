"""The real Prometheus and Alertmanager that other tests use: an alert goes from a scraped value to a notification."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Gauge

from axon.telemetry.metrics import Metrics
from tests.services.alertmanager import AlertmanagerServer, NoticeReceiver
from tests.services.process import wait_for
from tests.services.prometheus import PrometheusServer
from tests.services.require import require

pytestmark = pytest.mark.services

RULES = {"groups": [{"name": "test", "rules": [{"alert": "TooHigh", "expr": "height > 2", "labels": {"to": "us"}}]}]}


@pytest.fixture
def height() -> Iterator[tuple[Gauge, int]]:
    """A gauge, and the port on which it is scraped."""
    registry = CollectorRegistry()
    gauge = Gauge("height", "A value that the test sets.", registry=registry)
    metrics = Metrics()
    metrics.registry = registry
    port, close = metrics.serve("127.0.0.1", 0)
    yield gauge, port
    close()


def test_a_scraped_value_becomes_a_series_an_alert_and_a_notification(
    tmp_path: Path, height: tuple[Gauge, int]
) -> None:
    require("prometheus", "prometheus-alertmanager")
    gauge, port = height
    with ExitStack() as stack:
        receiver = stack.enter_context(NoticeReceiver())
        route = {"receiver": "us", "group_wait": "10ms", "group_interval": "100ms", "repeat_interval": "1h"}
        receivers = [{"name": "us", "webhook_configs": [{"url": receiver.url}]}]
        alertmanager = AlertmanagerServer(tmp_path / "am", json.dumps({"route": route, "receivers": receivers}))
        stack.callback(alertmanager.kill)
        alertmanager.start()
        prometheus = PrometheusServer(
            tmp_path / "prom", rules=[json.dumps(RULES)], every_s=0.2, alertmanager_port=alertmanager.port
        )
        stack.callback(prometheus.kill)
        prometheus.start()
        gauge.set(1)
        prometheus.scrape([port], zone="a")
        wait_for(lambda: prometheus.value("height") == 1, "the value is scraped")
        assert prometheus.query("height")[0].labels["zone"] == "a"
        assert prometheus.up() == 1
        assert prometheus.firing() == set()
        gauge.set(3)
        wait_for(lambda: prometheus.firing() == {"TooHigh"}, "the alert fires")
        wait_for(lambda: ("firing", ("TooHigh",)) in _said(receiver), "the receiver is told")
        assert alertmanager.alerts() == {"TooHigh"}
        gauge.set(1)
        wait_for(lambda: prometheus.firing() == set(), "the alert has stopped")
        wait_for(lambda: ("resolved", ("TooHigh",)) in _said(receiver), "the receiver is told that it has ended")
        assert prometheus.broken_rules() == {}


def _said(receiver: NoticeReceiver) -> set[tuple[str, tuple[str, ...]]]:
    return {(notice.status, notice.alerts) for notice in receiver.notices}

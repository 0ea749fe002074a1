"""All files of a monitoring stack by their paths: dashboards, rules, routes, and what Prometheus scrapes."""

import json
from collections.abc import Mapping
from pathlib import Path

from axon.monitoring.alert import RUNBOOKS
from axon.monitoring.boards import DASHBOARDS
from axon.monitoring.routes import routes
from axon.monitoring.rules import rule_file
from axon.monitoring.yaml_text import yaml_text

_MADE = "Written by `axon monitoring`; change src/axon/monitoring instead."
_PORTS = {"gateway": 8001, "worker": 8002, "control": 8003}
"""The ports on which processes of each role serve their metrics, unless they are told otherwise."""


def files(*, runbooks: str = RUNBOOKS, factor: float = 1.0) -> dict[str, str]:
    """The text of each file by its path."""
    boards = {f"grafana/{each.uid}.json": json.dumps(each.grafana(), indent=2) + "\n" for each in DASHBOARDS}
    return boards | {
        "prometheus/prometheus.yaml": yaml_text(_scraping(), _MADE),
        "prometheus/rules.yaml": yaml_text(rule_file(factor, runbooks), _MADE),
        "alertmanager/alertmanager.yaml": yaml_text(
            routes(factor=factor), f"{_MADE}\nPut your own receivers in the place of the two webhooks."
        ),
    }


def write(folder: Path, made: Mapping[str, str]) -> None:
    """Writes all of them below a folder."""
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _scraping() -> dict[str, object]:
    jobs = [
        {"job_name": f"axon-{role}", "static_configs": [{"targets": [f"localhost:{port}"]}]}
        for role, port in _PORTS.items()
    ]
    return {
        "global": {"scrape_interval": "15s", "evaluation_interval": "15s"},
        "rule_files": ["rules.yaml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": ["localhost:9093"]}]}]},
        "scrape_configs": jobs,
    }

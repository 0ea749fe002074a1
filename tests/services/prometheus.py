"""A real Prometheus on a private port and folder, that scrapes what it is told to. Knows no metric."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.services.process import ServerProcess, free_port, private_folder
from tests.services.require import find


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series of an answer: its labels, and its values by their times in seconds."""

    labels: Mapping[str, str]
    values: Sequence[tuple[float, float]]

    @property
    def last(self) -> float:
        return self.values[-1][1]


class PrometheusServer:
    """One server. ``targets`` are scraped once in ``every_s``, and rules are evaluated as often."""

    def __init__(
        self, folder: Path, *, rules: Sequence[str] = (), every_s: float = 1.0, alertmanager_port: int | None = None
    ) -> None:
        """``rules`` are whole rule files, in YAML or JSON."""
        self.folder = private_folder(folder)
        self.port = free_port()
        self._every_s = every_s
        self._targets = self.folder / "targets.json"
        self.scrape([])
        names = [self._written(f"rules-{number}.yaml", text) for number, text in enumerate(rules)]
        config = self._written("prometheus.json", json.dumps(self._config(names, alertmanager_port)))
        binary = find("prometheus")
        assert binary is not None, "prometheus is not installed"
        listen = f"--web.listen-address=127.0.0.1:{self.port}"
        storage = f"--storage.tsdb.path={self.folder / 'tsdb'}"
        self._process = ServerProcess(
            # An alert that fires before it knows its Alertmanager would be sent again a minute later only.
            [binary, f"--config.file={config}", storage, listen, "--rules.alert.resend-delay=1s"],
            self.folder,
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it answers queries."""
        self._process.start(self._ready)

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.stop()

    def scrape(self, ports: Sequence[int], **labels: str) -> None:
        """From now on it scrapes ``/metrics`` of these loopback ports. It reads the change within a second or two."""
        self.scrape_groups([{"targets": [f"127.0.0.1:{port}" for port in ports], "labels": labels}])

    def scrape_groups(self, groups: Sequence[Mapping[str, object]]) -> None:
        """The same for several groups, in the form of ``file_sd_configs``: targets and labels."""
        fresh = self._targets.with_suffix(".new")
        fresh.write_text(json.dumps(groups))
        fresh.chmod(0o644)
        fresh.replace(self._targets)

    def query(self, expression: str) -> list[Series]:
        """The series of an expression now."""
        found = self._get("/api/v1/query", query=expression)["result"]
        if isinstance(found, list) and found and not isinstance(found[0], dict):
            return [Series(labels={}, values=[(float(found[0]), float(found[1]))])]  # a scalar
        return [Series(labels=each["metric"], values=[_point(each["value"])]) for each in found]

    def query_range(self, expression: str, start: float, end: float, step_s: float) -> list[Series]:
        """The series of an expression over a time, both ends in seconds since 1970."""
        found = self._get(
            "/api/v1/query_range", query=expression, start=str(start), end=str(end), step=f"{step_s * 1000:.0f}ms"
        )["result"]
        return [Series(labels=each["metric"], values=[_point(pair) for pair in each["values"]]) for each in found]

    def value(self, expression: str) -> float | None:
        """The sum of an expression's series; none where there are none."""
        found = self.query(expression)
        return sum(each.last for each in found) if found else None

    def firing(self) -> set[str]:
        """The names of the alerts that fire."""
        found = self._get("/api/v1/alerts")["alerts"]
        return {each["labels"]["alertname"] for each in found if each["state"] == "firing"}

    def broken_rules(self) -> dict[str, str]:
        """What went wrong in the last evaluation of each rule where something did, by the rule's name."""
        rules = [rule for group in self._get("/api/v1/rules")["groups"] for rule in group["rules"]]
        return {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")}

    def up(self) -> int:
        """How many targets answered their last scrape."""
        return sum(1 for each in self._get("/api/v1/targets")["activeTargets"] if each["health"] == "up")

    def _get(self, path: str, **params: str) -> Any:
        answer = httpx.get(self.url + path, params=params, timeout=60)
        assert answer.status_code == 200, f"{params}: {answer.text}"
        return answer.json()["data"]

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def _written(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o644)
        return path

    def _config(self, rules: Sequence[Path], alertmanager_port: int | None) -> dict[str, object]:
        often = f"{self._every_s * 1000:.0f}ms"
        alerting = [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager_port}"]}]}] if alertmanager_port else []
        files = [{"files": [str(self._targets)], "refresh_interval": "1s"}]
        return {
            "global": {"scrape_interval": often, "evaluation_interval": often, "scrape_timeout": often},
            "rule_files": [str(path) for path in rules],
            "alerting": {"alertmanagers": alerting},
            "scrape_configs": [{"job_name": "axon", "file_sd_configs": files}],
        }


def _point(pair: Sequence[object]) -> tuple[float, float]:
    return float(str(pair[0])), float(str(pair[1]))

"""Alertmanager's routes: the real program accepts them, and sends each severity where it belongs."""

import subprocess
from pathlib import Path

import pytest

from axon.monitoring.routes import routes
from axon.monitoring.rules import ALERTS
from axon.monitoring.yaml_text import yaml_text
from tests.services.require import find, require


def amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    require("amtool")
    return subprocess.run([str(find("amtool")), *arguments], capture_output=True, text=True, timeout=60)


@pytest.fixture
def config(tmp_path: Path) -> str:
    (path := tmp_path / "alertmanager.yaml").write_text(yaml_text(routes()))
    return str(path)


def test_alertmanager_accepts_the_routes(config: str) -> None:
    checked = amtool("check-config", config)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "2 receivers" in checked.stdout


@pytest.mark.parametrize("severity", ["page", "ticket"])
def test_each_severity_has_its_receiver(config: str, severity: str) -> None:
    tested = amtool("config", "routes", "test", f"--config.file={config}", f"severity={severity}", "alertname=Any")
    assert tested.stdout.strip() == severity


def test_all_alerts_have_a_severity_that_is_routed() -> None:
    assert {each.severity for each in ALERTS} == {"page", "ticket"}


def test_what_is_kept_quiet_exists() -> None:
    names = {each.name for each in ALERTS}
    rules = routes()["inhibit_rules"]
    assert isinstance(rules, list)
    matchers = [matcher for rule in rules for end in ("source", "target") for matcher in rule[f"{end}_matchers"]]
    asked = [matcher.partition('"')[2].rstrip('"') for matcher in matchers if matcher.startswith("alertname")]
    assert {name for each in asked for name in each.split("|")} <= names

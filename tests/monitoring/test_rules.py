"""The rule file: Prometheus accepts it at any length of time, and every alert fires when it should and only then."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from axon.monitoring.alert import Alert
from axon.monitoring.names import metrics_in
from axon.monitoring.objective import BURNS
from axon.monitoring.objectives import OBJECTIVES
from axon.monitoring.rules import ALERTS, RECORDINGS, alert_names, rule_file
from axon.monitoring.yaml_text import yaml_text
from tests.monitoring.cases import CASES, Case, Scraped
from tests.services.require import find, require


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    require("promtool")
    return subprocess.run([str(find("promtool")), *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("factor", [1.0, 1 / 120])
def test_prometheus_accepts_the_rules_at_full_length_and_in_short(tmp_path: Path, factor: float) -> None:
    (path := tmp_path / "rules.yaml").write_text(yaml_text(rule_file(factor)))
    checked = promtool("check", "rules", str(path))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_alert_fires_on_its_fault_and_is_quiet_without_it(tmp_path: Path) -> None:
    files = [_cases_file(tmp_path, alert) for alert in alert_names()]
    checked = promtool("test", "rules", *map(str, files))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_case_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    quiet = next(case for case in CASES if case.alert == "AxonNoLeader")
    path = _cases_file(tmp_path, "AxonNoLeader", [replace(quiet, fires=quiet.quiet), replace(quiet, quiet=quiet.fires)])
    checked = promtool("test", "rules", str(path))
    assert checked.returncode != 0
    assert (checked.stdout + checked.stderr).count("count(ALERTS") == 2


def _cases_file(folder: Path, alert: str, cases: Sequence[Case] = CASES) -> Path:
    """The cases of one alert, on a rule file that has it and what it reads alone: all rules would take a minute."""
    alerts = [each for each in ALERTS if each.name == alert]
    read = {name for each in alerts for name in metrics_in(each.condition)}
    rules = [
        *(each.rule(1.0) for each in RECORDINGS if each.name in read),
        *(each.rule(1.0, "docs/runbooks") for each in alerts),
    ]
    (folder / f"{alert}.rules.yaml").write_text(yaml_text({"groups": [{"name": "one", "rules": rules}]}))
    tests = [
        _test(case, scraped, fires=fires)
        for case in cases
        if case.alert == alert
        for scraped, fires in ((case.fires, True), (case.quiet, False))
    ]
    file = {"rule_files": [f"{alert}.rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (path := folder / f"{alert}.tests.yaml").write_text(json.dumps(file))
    return path


def _test(case: Case, scraped: Scraped, *, fires: bool) -> dict[str, object]:
    labels = {"alertname": case.alert, "alertstate": "firing", **case.labels}
    chosen = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return {
        "name": f"{case.alert} {'fires' if fires else 'is quiet'}: {case.about or dict(case.labels)}",
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in scraped.items()],
        "promql_expr_test": [
            {
                "expr": f"count(ALERTS{{{chosen}}})",
                "eval_time": case.at,
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }


def test_there_is_a_case_for_each_alert_and_each_burn_rate() -> None:
    assert {case.alert for case in CASES} == set(alert_names())
    burns = {(case.alert, case.labels["burn"]) for case in CASES if "burn" in case.labels}
    assert burns == {(objective.alert, burn.name) for objective in OBJECTIVES for burn in BURNS}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda each: f"{each.name}-{each.labels.get('burn', '')}")
def test_an_alert_says_what_it_means_and_names_its_runbook(alert: Alert) -> None:
    rule = alert.rule(1.0, "https://wiki.example/runbooks/")
    assert rule["annotations"] == {
        "summary": alert.summary,
        "description": alert.meaning,
        "runbook_url": f"https://wiki.example/runbooks/{alert.name}.md",
    }
    assert "$watch" not in alert.condition
    assert alert.summary.endswith(".")
    assert alert.meaning.endswith(".")


def test_a_burn_rate_is_a_multiple_of_the_budget() -> None:
    rules = {(each.name, each.labels.get("burn")): each.condition for each in ALERTS}
    assert "> 0.0144 and" in rules["AxonAvailabilityBurn", "fast"]
    assert "> 0.3 and" in rules["AxonFirstTokenBurn", "medium"]
    assert "on (class)" in rules["AxonTokenGapBurn", "slow"]

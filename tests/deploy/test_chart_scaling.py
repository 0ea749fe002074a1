"""What KEDA is told: queries that Prometheus answers with the right number, and numbers that an upgrade leaves."""

import json
import subprocess
from pathlib import Path

from tests.deploy.chart import AWS_KEDA, Object, named, of_kind, rendered
from tests.services.require import find, require

SCRAPED = {
    'axon_replicas{group="small#", state="wanted", instance="a"}': 2,
    'axon_replicas{group="small#", state="ready", instance="a"}': 70,
    'axon_replicas{group="small~b#", state="wanted", instance="a"}': 3,
    'axon_replicas{group="small~b#", state="wanted", instance="b"}': 3,
    'axon_replicas{group="small#gold", state="wanted", instance="a"}': 80,
    'axon_replicas{group="smaller#", state="wanted", instance="a"}': 90,
    'axon_replicas{group="large-2.5~c#gold", state="wanted", instance="a"}': 4,
    'axon_replicas{group="large-2x5#gold", state="wanted", instance="a"}': 60,
    'axon_backlog_tokens{model="small", instance="a"}': 30000,
    'axon_backlog_tokens{model="small", instance="b"}': 29000,
    'axon_backlog_tokens{model="smaller", instance="a"}': 90000,
    'axon_backlog_tokens{model="large", instance="a"}': 7000,
}
"""Two versions of one deployment, of which two controls speak while they change places; and what is none of it."""


def scaled(values: str) -> list[Object]:
    return of_kind(rendered(values), "ScaledObject")


def query_of(values: str, name: str) -> str:
    (trigger,) = named(rendered(values), "ScaledObject", name)["spec"]["triggers"]
    return str(trigger["metadata"]["query"])


def test_prometheus_adds_up_the_versions_of_one_deployment_in_one_pool(tmp_path: Path) -> None:
    asked = {
        query_of("external-datastores", "axon-worker-small"): 5,
        query_of("external-datastores", "axon-worker-large"): 4,
    }
    answered(asked, tmp_path)


def test_without_controls_advice_prometheus_counts_the_tokens_that_wait_for_a_deployment(tmp_path: Path) -> None:
    assert len(scaled(AWS_KEDA)) == 2
    asked = {query_of(AWS_KEDA, "axon-worker-l40s"): 30000, query_of(AWS_KEDA, "axon-worker-h100"): 7000}
    answered(asked, tmp_path)
    for each in scaled(AWS_KEDA):
        (trigger,) = each["spec"]["triggers"]
        assert (trigger["metricType"], trigger["metadata"]["threshold"]) == ("AverageValue", "10000")


def answered(asked: dict[str, int], tmp_path: Path) -> None:
    """Lets the real Prometheus answer each query of what was scraped, and compares."""
    require("promtool")
    case = {
        "interval": "1m",
        "input_series": [{"series": series, "values": str(value)} for series, value in SCRAPED.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": "0m", "exp_samples": [{"labels": "{}", "value": value}]}
            for query, value in asked.items()
        ],
    }
    (tmp_path / "case.json").write_text(json.dumps({"tests": [case]}))
    command = [str(find("promtool")), "test", "rules", str(tmp_path / "case.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_metric_that_is_lost_stops_no_worker() -> None:
    assert len(scaled("external-datastores")) == 2
    for each in scaled("external-datastores"):
        (trigger,) = each["spec"]["triggers"]
        assert trigger["metadata"]["ignoreNullValues"] == "false"
        assert each["spec"]["fallback"]["replicas"] == each["spec"]["minReplicaCount"]


def test_an_upgrade_leaves_the_number_that_keda_has_set() -> None:
    targets = [each["spec"]["scaleTargetRef"] for each in scaled("external-datastores")]
    assert sorted(each["kind"] for each in targets) == ["Deployment", "LeaderWorkerSet"]
    for each in targets:
        found = named(rendered("external-datastores"), each["kind"], each["name"])
        assert "replicas" not in found["spec"]
    assert named(rendered("multinode-lws"), "LeaderWorkerSet", "axon-worker-large")["spec"]["replicas"] == 2

"""Every value of the chart has an effect: in place of each stands a mark, and each mark is in what Helm renders.

Three sets of values are rendered, since some values exclude each other: a digest stands in place of a tag.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.deploy.chart import CHART, RELEASE, Values, over, read, together
from tests.deploy.test_chart_settings import SCRIPT

_FIRST = 41_000
"""Marks of numbers begin here, where no number of the chart's own is; a grace is longer than all that it must hold."""
_GRACE = 90_000

FIRST: Values = {
    "secrets": {name: {"name": ""} for name in ("queue", "live", "store", "pepper")} | {"external": {"enabled": True}},
    "images": {"gateway": {"digest": ""}, "worker": {"digest": ""}},
    "batchFiles": {"url": ""},
    "backup": {"enabled": True, "pepper": False},
    "ingress": {"enabled": True, "className": "alb", "scheme": "internet-facing"},
    "control": {"launcher": "kubernetes"},
    "workerDefaults": {
        "image": {"repository": "", "tag": "", "digest": "", "pullPolicy": ""},
        "modelClaim": "",
    },
    "operators": {name: {"enabled": True} for name in ("rabbitmq", "valkey", "postgres")},
    "monitoring": {"dashboards": {"enabled": False}, "serviceMonitor": {"enabled": True}},
    "spread": {"whenUnsatisfiable": "DoNotSchedule"},
}
SECOND: Values = {
    "secrets": {"ca": {"kind": "ConfigMap"}, "external": {"enabled": True, "store": {"kind": "SecretStore"}}},
    "batchFiles": {"claim": "", "podLocal": True},
    "backup": {"enabled": True, "claim": ""},
    "edge": {"enabled": False},
    "gateway": {"autoscaling": {"enabled": True}},
    "networkPolicy": {"enabled": False},
    "control": {"launcher": "none", "launches": ""},
    "workerDefaults": {"kind": "LeaderWorkerSet", "pool": "", "keda": {"enabled": True}},
    "workers": {"two": {"deployment": "two", "image": {"digest": ""}}},
    "monitoring": {"dashboards": {"enabled": False}, "rules": {"kind": "PrometheusRule"}},
}
"""What is not marked in the one set and the other: where a value excludes another, and switches."""
THIRD: Values = {
    "batchFiles": {"podLocal": True},
    "backup": {"enabled": True, "claim": "axon-backups"},
    "ingress": {"enabled": True},
    "monitoring": {"dashboards": {"enabled": False}},
}
"""The chart's own values but for these, and some marks: annotations for an ALB are for its class alone."""

SWITCHES = {
    "secrets.external.enabled": "kind: ExternalSecret",
    "secrets.ca.kind": "- configMap:",
    "secrets.external.store.kind": "secretStoreRef: {{kind: SecretStore,",
    "batchFiles.podLocal": "--without-files",
    "backup.pepper": "--without-secrets",
    "edge.enabled": "kind: PodDisruptionBudget\nmetadata:\n  name: {name}-edge",
    "ingress.enabled": "kind: Ingress\n",
    "gateway.autoscaling.enabled": "kind: HorizontalPodAutoscaler",
    "networkPolicy.enabled": "kind: NetworkPolicy",
    "control.launcher": "worker-template.yaml: |",
    "workerDefaults.kind": "kind: LeaderWorkerSet",
    "workerDefaults.keda.enabled": "kind: ScaledObject",
    "monitoring.serviceMonitor.enabled": "kind: ServiceMonitor",
    "monitoring.rules.kind": "kind: PrometheusRule",
    "operators.rabbitmq.enabled": "kind: RabbitmqCluster",
    "operators.valkey.enabled": "kind: Valkey\n",
    "operators.postgres.enabled": "apiVersion: postgresql.cnpg.io/v1",
    "spread.whenUnsatisfiable": "\n          whenUnsatisfiable: DoNotSchedule\n",
    "ingress.scheme": "scheme: internet-facing",
}
"""Values that have two or three states, each with what is rendered in one of its states and in no other."""

ELSEWHERE = {
    "backup.enabled": "test_chart_backup.py",
    "monitoring.dashboards.enabled": "test_chart_settings.py",
    "monitoring.dashboards.labels.grafana_dashboard": "test_chart_settings.py",
    "podSecurityContext.runAsNonRoot": "test_chart_rights.py",
}
"""Values whose effect another test looks at."""


def leaves(values: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value that has none below it, by its path."""
    if not isinstance(values, dict) or not values:
        yield path, values
        return
    for name, each in values.items():
        yield from leaves(each, f"{path}.{name}".lstrip("."))


def is_switch(path: str, value: object) -> bool:
    return isinstance(value, bool) or path in SCRIPT.ENUMS


@cache
def marks() -> dict[str, str]:
    """The mark of each value: a word, or a number as text."""
    found = {}
    for number, (path, value) in enumerate(leaves(read(CHART / "values.yaml"))):
        if is_switch(path, value) or path.startswith("workers.") or path in ELSEWHERE:
            continue
        key = path.rpartition(".")[2]
        base = _GRACE if key == "terminationGracePeriodSeconds" else _FIRST
        is_number = isinstance(value, int) or key.endswith("Ports")
        found[path] = str(base + number) if is_number else f"mark{number}"
    return found


def marked(path: str, value: object) -> object:
    """The value with its mark in it, of the type that the chart wants."""
    if (mark := marks().get(path)) is None:
        return value
    key = path.rpartition(".")[2]
    if isinstance(value, int):
        return int(mark)
    if isinstance(value, list):
        peers = {"podSelector": {"matchLabels": {"app": mark}}}
        known = {"trustedProxies": mark, "extraEnv": {"name": "X", "value": mark}, "tolerations": {"key": mark}}
        others = {
            "pullSecrets": {"name": mark},
            "extraObjects": {"apiVersion": "v1", "kind": "Any", "metadata": {"name": mark}},
        }
        return [int(mark) if key.endswith("Ports") else {**known, **others}.get(key, peers)]
    if isinstance(value, dict):
        if key == "settings":  # those of a role stand over those of all
            return {"model_name" if path == "settings" else "model": mark}
        return {"queue": {"key": mark}} if key == "data" else {"mark": mark}
    return mark


def rebuilt(values: object, path: str = "") -> Any:
    if not isinstance(values, dict) or not values:
        return marked(path, values)
    return {name: rebuilt(each, f"{path}.{name}".lstrip(".")) for name, each in values.items()}


@cache
def sets() -> dict[str, Values]:
    own = read(CHART / "values.yaml")
    every = {name: rebuilt(each, name) for name, each in own.items() if name != "workers"}
    third = {
        "images": {
            "edge": {"tag": marks()["images.edge.tag"]},
            "worker": {"digest": marks()["images.worker.digest"]},
        },
        "ingress": {"className": marks()["ingress.className"]},
    }
    return {
        "first": over(every, {**FIRST, "workers": {marks()["control.launches"]: {}, "two": {}}}),
        "second": over({**every, "workers": {"one": {}}}, SECOND),
        "third": over(over(own, THIRD), third),
    }


@cache
def texts() -> dict[str, str]:
    """What Helm renders of each set."""
    documents = together("template", sets()).split("\n---\n")
    return {name: "\n---\n".join(each for each in documents if f"/charts/{name}/" in each) for name in sets()}


@pytest.mark.parametrize("path", sorted(marks()))
def test_a_value_is_in_what_is_rendered(path: str) -> None:
    pattern = re.compile(rf"(?<![0-9A-Za-z]){marks()[path]}(?![0-9])")
    assert any(pattern.search(text) for text in texts().values()), "no template reads it"


@pytest.mark.parametrize("path", sorted(SWITCHES))
def test_a_switch_changes_what_is_rendered(path: str) -> None:
    found: dict[object, set[bool]] = {}
    for name, text in texts().items():
        wanted = SWITCHES[path].format(name=sets()[name]["fullnameOverride"] or RELEASE)
        found.setdefault(dict(leaves(sets()[name]))[path], set()).add(wanted in text)
    assert len(found) == 2
    assert sorted(map(list, found.values())) == [[False], [True]], found


def test_every_switch_is_tried_somewhere() -> None:
    switches = {path for path, value in leaves(read(CHART / "values.yaml")) if is_switch(path, value)}
    assert switches - set(SWITCHES) - set(ELSEWHERE) == set()

"""The Helm chart: linted, rendered with every set of values, and valid on three versions of Kubernetes."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests import long
from tests.deploy import tools
from tests.deploy.chart import (
    CHART,
    RELEASE,
    SETS,
    contents,
    linted,
    merged,
    over,
    rendered,
    told_once,
    value_sets,
    workloads,
)
from tests.deploy.checking import each_of, is_check_deploy

VERSIONS = ("1.32", "1.33", "1.34")
CRDS: dict[str, Any] = yaml.safe_load((Path(__file__).with_name("crds.yaml")).read_text())

REFUSED: dict[str, tuple[Any, str]] = {
    "short-grace": (
        {"gateway": {"terminationGracePeriodSeconds": 60}},
        "gateway: terminationGracePeriodSeconds is 60, less",
    ),
    "long-notice": (
        {"settings": {"lifecycle": {"notice_s": 31}}},
        "control: terminationGracePeriodSeconds is 60, less",
    ),
    "no-files": ({"batchFiles": {"podLocal": False}}, "batchFiles: say where the files of batches are"),
    "launches-nothing": ({"control": {"launcher": "kubernetes"}}, "control.launches: with launcher kubernetes"),
    "slow-balancer": (
        {"ingress": {"enabled": True, "deregistrationDelaySeconds": 100}},
        "ingress.deregistrationDelaySeconds must be less than",
    ),
    "nowhere-to-keep": ({"backup": {"enabled": True}}, "backup: say where backups are kept"),
    "keep-none": (
        {"backup": {"enabled": True, "claim": "axon-backups", "keep": 0}},
        "backup.keep is 0: with less than 1",
    ),
    "one-number-twice": (
        {"workerDefaults": {"deployment": "small", "keda": {"enabled": True}}, "workers": {"default": {}, "more": {}}},
        "workers.more.keda: workers.default already follows the number of deployment small",
    ),
    "backlog-of-a-pool": (
        {"workers": {"default": {"deployment": "small", "pool": "gold", "keda": {"enabled": True}}}},
        "workers.default.keda: the tokens that wait are not counted by pool",
    ),
    "nameless-keda": (
        {"workers": {"default": {"keda": {"enabled": True}}}},
        "workers.default.keda: its query needs the name",
    ),
}
"""Changes to the minimal values, each with what Helm must say."""

MISSPELT: tuple[Any, ...] = (
    {"settings": {"gateway": {"no_such_setting": 1}}},
    {"settings": {"queue": "amqp://x"}},
    {"settings": {"engine": {"kind": "no-such-engine"}}},
    {"gatway": {"replicas": 2}},
    {"gateway": {"replicas": "two"}},
    {"workers": {"default": {"kind": "StatefulSet"}}},
    {"workers": {"Default": {}}},
)
"""Changes that the schema must refuse."""

each_set = pytest.mark.parametrize("values", SETS)


@cache
def valid(text: str, version: str) -> None:
    """Raises if the object is not; of objects that several sets have, one is looked at."""
    kubernetes_validate.validate(json.loads(text), version, strict=True)


@cache
def lint(*names: str) -> tuple[dict[str, str], str]:
    return linted({name: value_sets()[name] for name in names})


@cache
def refusals(*names: str) -> tuple[dict[str, str], str]:
    minimal = value_sets()["minimal"]
    checked = ("gateway.yaml", "control.yaml", "workers.yaml", "ingress.yaml", "backup.yaml")
    return linted({name: over(minimal, REFUSED[name][0]) for name in names}, checked)


def together(one: str, every: Iterable[str]) -> Iterable[str]:
    """What Helm is asked about at once: everything where all of it is checked, since each start of it costs."""
    return every if is_check_deploy() or long.whole() else (one,)


@each_of("values", SETS, corpus="linted")
def test_helm_lints_the_chart_with_these_values(values: str) -> None:
    said, aside = lint(*together(values, SETS))
    assert "[ERROR]" not in said[values]
    assert "[WARNING]" not in said[values]
    assert "Fail:" not in aside


@each_set
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_rendered_is_valid_there(values: str, version: str) -> None:
    known = [each for each in rendered(values) if each["kind"] not in CRDS]
    assert known
    for each in known:
        valid(json.dumps(each), version)


@each_set
def test_custom_resources_have_only_fields_that_their_projects_publish(values: str) -> None:
    for each in [each for each in rendered(values) if each["kind"] in CRDS]:
        assert each["apiVersion"] == CRDS[each["kind"]]["apiVersion"]
        jsonschema.validate(each["spec"], CRDS[each["kind"]]["spec"])


@each_set
@pytest.mark.parametrize("version", VERSIONS)
def test_pods_within_custom_resources_are_valid_too(values: str, version: str) -> None:
    for each in workloads(rendered(values)):
        metadata = {"name": "pod", **each.template["metadata"]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": each.spec}
        valid(json.dumps(pod), version)


def test_every_custom_resource_that_is_described_is_rendered_by_a_set() -> None:
    kinds = {each["kind"] for values in SETS for each in rendered(values)}
    assert set(CRDS) - kinds == set()


@each_set
def test_objects_have_names_of_the_release_and_each_once(values: str) -> None:
    names = [(each["kind"], each["metadata"]["name"]) for each in rendered(values)]
    assert len(set(names)) == len(names)
    assert [name for _, name in names if not name.startswith(RELEASE)] == []
    assert [name for _, name in names if len(name) > 63] == []


@each_of("name", REFUSED, corpus="refused")
def test_values_that_would_harm_are_refused_with_a_reason(name: str) -> None:
    _, says = REFUSED[name]
    _, aside = refusals(*together(name, REFUSED))
    assert f"Fail: {says}" in aside


@pytest.mark.parametrize("changes", MISSPELT, ids=str)
def test_the_schema_refuses_what_no_template_reads(changes: Any) -> None:
    schema, minimal = json.loads((CHART / "values.schema.json").read_text()), merged(CHART / "ci" / "minimal.yaml")
    jsonschema.validate(minimal, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(over(minimal, changes), schema)


def test_what_a_template_refuses_is_not_installed() -> None:
    def install() -> str:
        minimal = str(CHART / "ci" / "minimal.yaml")
        done = tools.run("helm", "template", RELEASE, str(CHART), "-f", minimal, "--set", "batchFiles.podLocal=false")
        return f"{done.returncode}\n{done.stderr}"

    tools.require("helm")
    code, _, said = told_once("helm", ("not installed", contents(CHART), tools.LOCK.read_text()), install).partition(
        "\n"
    )
    assert code != "0"
    assert "say where the files of batches are" in said

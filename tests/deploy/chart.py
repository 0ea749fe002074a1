"""What the chart renders, for tests: every set of values, by one run of the real Helm.

Helm is slow where it runs under an emulator, so all sets are rendered together: each is a copy of the chart with these
values as its own, and a chart around them holds all copies. What was rendered is kept by the hash of all that it was
made from, so that several test processes render once.
"""

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.clients import made_once
from tests.deploy import tools
from tests.services.keeper import shared

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "deploy" / "helm" / "axon"
SETS = tuple(sorted(path.stem for path in (CHART / "ci").glob("*.yaml")))
AWS = "aws"
"""The set of values that Terraform gives for the environment prod."""
AWS_KEDA = "aws-keda"
"""The same with what docs/deploy/aws.md says for KEDA."""
KEPT_AND_COPIED = "kept-and-copied"
"""The set ha with backups that go to a bucket too."""
WITHOUT_EDGE = "without-edge"
"""The set minimal where clients of one namespace come to the gateways themselves."""
RELEASE, NAMESPACE, KUBERNETES = "axon", "serving", "1.34.0"
_OF_TERRAFORM = REPOSITORY / "deploy" / "terraform" / "aws" / "environments" / "prod" / "tests" / "helm-values.yaml"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SOURCE = re.compile(r"^# Source: all/charts/([a-z0-9.-]+)/", re.MULTILINE)
WATCHED = ("ha", "eks-gpu")
"""The sets that are rendered with dashboards, over which Helm takes seconds."""
_UNWATCHED: "Values" = {"monitoring": {"dashboards": {"enabled": False}}}
_CLIENTS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "apps"}}}
_NO_EDGE: "Values" = {"edge": {"enabled": False}, "networkPolicy": {"clients": [_CLIENTS]}}
_ASIDE = "\n==> aside\n"
_SECTION = re.compile(r"^==> Linting .*/([a-z0-9.-]+)$", re.MULTILINE)

Object = dict[str, Any]
Values = dict[str, Any]


@dataclass(frozen=True)
class Workload:
    """Pods of one kind: a Deployment's, a LeaderWorkerSet's, a CronJob's, or those that control launches."""

    name: str
    kind: str
    template: Object
    owner: Object

    @property
    def spec(self) -> Object:
        return dict(self.template["spec"])

    @property
    def labels(self) -> Mapping[str, str]:
        return dict(self.template["metadata"]["labels"])

    @property
    def containers(self) -> list[Object]:
        """All of them, those that run before the pod's own with them."""
        return [each for kind in ("initContainers", "containers") for each in self.spec.get(kind) or []]

    @property
    def container(self) -> Object:
        """The one that does the pod's work."""
        (only,) = self.spec["containers"]
        return dict(only)

    @property
    def env(self) -> dict[str, str]:
        """Variables with a value of their own."""
        return {each["name"]: each["value"] for each in self.container.get("env", []) if "value" in each}


def rendered(values: str) -> list[Object]:
    """The objects of one of ``SETS``, of an earlier release's values (``release_set``), or of the rehearsal."""
    return list(_rendered()[values])


@shared
def _rendered() -> dict[str, tuple[Object, ...]]:
    text = "\n" + together("template", value_sets())
    found: dict[str, list[Object]] = {}
    for document in text.split("\n---\n"):
        if match := _SOURCE.search(document):
            found.setdefault(match[1], []).extend(objects_of(document))
    return {name: tuple(objects) for name, objects in found.items()}


def value_sets() -> dict[str, Values]:
    """Every set of values that tests render, by its name."""
    rehearsal, here = Path(__file__).with_name("rehearsal"), Path(__file__).with_name("releases")
    found = {
        **{name: merged(CHART / "ci" / f"{name}.yaml") for name in SETS},
        **{release_set(path.name.removesuffix("-values.yaml")): read(path) for path in here.glob("*-values.yaml")},
        KEPT_AND_COPIED: merged(
            CHART / "ci" / "ha.yaml", changes={"backup": {"url": "s3://example-axon-backups/axon"}}
        ),
        WITHOUT_EDGE: merged(CHART / "ci" / "minimal.yaml", changes=_NO_EDGE),
        AWS: merged(_OF_TERRAFORM),
        AWS_KEDA: merged(_OF_TERRAFORM, changes=in_page(REPOSITORY / "docs" / "deploy" / "aws.md", "workerDefaults:")),
        "kustomize": merged(REPOSITORY / "deploy" / "kustomize" / "values.yaml"),
        "rehearsal": merged(rehearsal / "values.yaml"),
        "rehearsal-next": merged(rehearsal / "values.yaml", rehearsal / "next.yaml"),
    }
    return {name: values if name in WATCHED else over(values, _UNWATCHED) for name, values in found.items()}


def release_set(release: str) -> str:
    """The name of the set of an earlier release's values."""
    return f"release-{release.replace('.', '-')}"


def read(path: Path) -> Values:
    found: Values = yaml.load(path.read_text(), _LOADER)
    return found


def in_page(page: Path, begin: str) -> Values:
    """The values of the one example in a page that begins so."""
    (text,) = [each for each in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL) if each.startswith(begin)]
    found: Values = yaml.load(text, _LOADER)
    return found


def merged(*files: Path, changes: Values | None = None) -> Values:
    """The chart's own values with those of the files and the changes over them, as Helm merges them."""
    found = read(CHART / "values.yaml")
    for each in [*map(read, files), changes or {}]:
        found = over(found, each)
    return found


def over(below: Values, above: Values) -> Values:
    """Maps are merged, everything else is replaced; null removes."""
    found = dict(below)
    for key, value in above.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = over(found[key], value)
        else:
            found[key] = value
    return found


def together(word: str, sets: Mapping[str, Values], templates: Sequence[str] = ()) -> str:
    """What ``helm template`` or ``helm lint`` prints of the chart with each of these values, in one run; of these
    templates alone, if some are named."""
    read_by_helm = [each for each in contents(CHART) if not each[0].startswith(("ci/", "README"))]
    given = (word, KUBERNETES, json.dumps(dict(sets), sort_keys=True), read_by_helm, templates, tools.LOCK.read_text())

    def make() -> str:
        with tempfile.TemporaryDirectory() as name:
            copies = [_copied(Path(name) / "charts" / each, values, templates) for each, values in sets.items()]
            around = {"apiVersion": "v2", "name": "all", "version": "0.0.0"}
            (Path(name) / "Chart.yaml").write_text(yaml.safe_dump(around))
            if word == "template":
                command = [RELEASE, name, "-n", NAMESPACE, "--kube-version", KUBERNETES]
            else:
                command = ["--strict", *map(str, copies)]
            done = tools.run("helm", word, *command)
        said = f"{done.stdout}{_ASIDE}{done.stderr}" if word == "lint" else done.stdout
        return said if word == "lint" or done.returncode == 0 else "FAILED" + done.stderr

    tools.require("helm")
    said = told_once("helm", given, make)
    if said.startswith("FAILED"):
        pytest.fail(said, pytrace=False)
    return said


def told_once(tool: str, given: object, tell: Callable[[], str]) -> str:
    """What a tool says, kept by all that it says it of."""
    digest = hashlib.sha256(repr(given).encode()).hexdigest()[:24]

    def make(folder: Path) -> None:
        said = tell()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "said").write_text(said)

    return (made_once(f"{tool}-said-{digest}", "said", make) / "said").read_text()


def _copied(folder: Path, values: Values, templates: Sequence[str]) -> Path:
    shutil.copytree(CHART, folder, ignore=shutil.ignore_patterns("ci", "README.md"))
    for path in (folder / "templates").glob("[a-z]*.yaml") if templates else ():
        if path.name not in templates:
            path.unlink()
    (folder / "Chart.yaml").write_text(yaml.safe_dump({**read(CHART / "Chart.yaml"), "name": folder.name}))
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    return folder


def linted(sets: Mapping[str, Values], templates: Sequence[str] = ()) -> tuple[dict[str, str], str]:
    """What ``helm lint --strict`` says of each, by the set's name, and what it says aside: a refusal of a template's
    own (``fail``), at which ``helm install`` stops, is only told there."""
    said, _, aside = together("lint", sets, templates).partition(_ASIDE)
    parts = _SECTION.split(said)
    return dict(zip(parts[1::2], parts[2::2], strict=True)), aside


def contents(path: Path) -> list[tuple[str, str]]:
    """A hash of every file below the path."""
    files = sorted(each for each in path.rglob("*") if each.is_file())
    return [(str(each.relative_to(path)), hashlib.sha256(each.read_bytes()).hexdigest()) for each in files]


def objects_of(text: str) -> list[Object]:
    return [each for each in yaml.load_all(text, _LOADER) if each]


def of_kind(objects: list[Object], *kinds: str) -> list[Object]:
    return [each for each in objects if each["kind"] in kinds]


def named(objects: list[Object], kind: str, name: str) -> Object:
    (found,) = [each for each in of_kind(objects, kind) if each["metadata"]["name"] == name]
    return found


def workloads(objects: list[Object]) -> Iterator[Workload]:
    """Everything that makes pods, the launcher's template with it."""
    for each in objects:
        name = each["metadata"]["name"]
        if each["kind"] == "Deployment":
            yield Workload(name, "Deployment", each["spec"]["template"], each)
        elif each["kind"] == "LeaderWorkerSet":
            yield Workload(name, "LeaderWorkerSet", each["spec"]["leaderWorkerTemplate"]["workerTemplate"], each)
        elif each["kind"] == "CronJob":
            yield Workload(name, "CronJob", each["spec"]["jobTemplate"]["spec"]["template"], each)
        elif each["kind"] == "ConfigMap" and "worker-template.yaml" in each["data"]:
            yield Workload(name, "launched", yaml.safe_load(each["data"]["worker-template.yaml"]), each)


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a selector with ``matchLabels`` and ``matchExpressions`` takes pods with these labels."""
    if not dict(selector.get("matchLabels") or {}).items() <= dict(labels).items():
        return False
    return all(_holds(each, labels) for each in selector.get("matchExpressions") or [])


def _holds(rule: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(rule["key"])
    match rule["operator"]:
        case "In":
            return value in rule["values"]
        case "Exists":
            return value is not None
    raise AssertionError(f"no test knows the operator {rule['operator']}")

"""Terraform for AWS: formatted, valid by the provider's schema, its modules' own tests green, and clean by checkov."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests import long
from tests.deploy.chart import told_once
from tests.deploy.checking import is_check_deploy
from tests.deploy.terraform import programs, schema, scripts
from tests.deploy.terraform.workspace import ROOT, Workspace, opened

terraform_pages = scripts.load("terraform_pages")
MODULES = sorted(path.name for path in (ROOT / "modules").iterdir())
ENVIRONMENTS = sorted(path.name for path in (ROOT / "environments").iterdir())
BASELINE = ROOT / "checkov.json"
CHART = ROOT.parents[1] / "helm" / "axon" / "values.yaml"
FILES = ("versions.tf", "variables.tf", "outputs.tf", "README.md")


slow = pytest.mark.skipif(not (is_check_deploy() or long.whole()), reason="make check-deploy runs it")


@pytest.fixture(scope="module")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with opened(tmp_path_factory.mktemp("tf"), sorted(ROOT.rglob("*.tf"))) as workspace:
        yield workspace


def test_all_files_are_formatted(terraform: Workspace) -> None:
    def fmt() -> str:
        done = terraform.run(ROOT, "fmt", "-check", "-diff", "-recursive", "-no-color")
        return f"{done.returncode}\n{done.stdout}"

    files = [(str(path.relative_to(ROOT)), path.read_text()) for path in sorted(ROOT.rglob("*.tf*")) if path.is_file()]
    code, _, said = told_once("terraform", ("fmt", files), fmt).partition("\n")
    assert code == "0", said


@pytest.fixture(scope="module")
def said(terraform: Workspace) -> Iterator[dict[str, "Future[str]"]]:
    """What Terraform says of the modules' tests, in two parts, and of each environment's: side by side."""
    files = [f"tests/{each}.tftest.hcl" for each in MODULES if each != "platform"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = {f"modules-{each}": pool.submit(terraform.tested, ROOT, files[each::2]) for each in range(2)}
        yield parts | {each: pool.submit(terraform.tested, ROOT / "environments" / each) for each in ENVIRONMENTS}


@slow
def test_every_module_passes_its_tests(said: dict[str, "Future[str]"]) -> None:
    both = "\n".join(said[f"modules-{each}"].result() for each in range(2))
    assert len(re.findall(r"Success! [1-9]\d* passed, 0 failed\.", both)) == 2, both
    passed = re.findall(r"^tests/([\w-]+)\.tftest\.hcl\.\.\. pass", both, re.MULTILINE)
    assert sorted([*passed, "platform"]) == MODULES


@slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_can_be_planned_whole(said: dict[str, "Future[str]"], name: str) -> None:
    assert re.search(r"Success! [1-9]\d* passed, 0 failed\.", said[name].result()), said[name].result()


def test_the_charts_values_are_values_of_the_chart() -> None:
    if not CHART.exists():
        pytest.skip("the chart is not there")
    given = yaml.safe_load((ROOT / "environments" / "prod" / "tests" / "helm-values.yaml").read_text())
    assert sorted(path for path in _paths(given) if not _is_value(path)) == []


def _paths(values: object, above: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """The names of all values, from the top down."""
    if not isinstance(values, dict) or not values:
        return {above}
    return {path for name, each in values.items() for path in _paths(each, (*above, name))}


def _is_value(path: tuple[str, ...]) -> bool:
    """Whether the chart has a value at the path, or one above it whose content is anybody's."""
    if path[0] == "workers":
        path = ("workerDefaults", *path[2:])
    here = yaml.safe_load(CHART.read_text())
    for name in path:
        if not isinstance(here, dict) or not here:
            return True
        if name not in here:
            return False
        here = here[name]
    return True


def test_a_value_that_the_chart_does_not_have_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chart = tmp_path / "values.yaml"
    chart.write_text("gateway: {proxies: -1, extraEnv: []}\nworkerDefaults: {gpus: 0, nodeSelector: {}}\n")
    monkeypatch.setattr(sys.modules[__name__], "CHART", chart)
    values = {
        "gateway": {"proxies": 2, "proxy": 2},
        "workers": {"h100": {"gpus": 8, "nodeSelector": {"a": "b"}, "efa": 1}},
    }
    assert sorted(path for path in _paths(values) if not _is_value(path)) == [
        ("gateway", "proxy"),
        ("workers", "h100", "efa"),
    ]


PLANTED = {
    'resource "aws_vpc" "x" {\n  cidr_blok = "10.0.0.0/16"\n}': "Unsupported argument",
    'resource "aws_subnet" "x" {\n  cidr_block = "10.0.0.0/24"\n}': "Missing required argument",
    'resource "aws_subnet" "y" {\n  vpc_id = ["a"]\n}': "Incorrect attribute value type",
    'resource "aws_lb" "x" {\n  logs {\n  }\n}': "Unsupported block type",
    'resource "aws_vpz" "x" {\n}': "Invalid resource type",
}


@slow
def test_planted_faults_are_noticed(terraform: Workspace, tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text("\n".join([(ROOT / "versions.tf").read_text(), *PLANTED]) + "\n")
    assert terraform.run(tmp_path, "init", "-input=false").returncode == 0
    done = terraform.run(tmp_path, "validate", "-no-color", "-json")
    found = json.loads(done.stdout)["diagnostics"]
    assert sorted(each["summary"] for each in found) == sorted(PLANTED.values())


@slow
def test_checkov_finds_nothing_that_has_no_reason() -> None:
    accepted: dict[str, str] = json.loads(BASELINE.read_text())["accepted"]
    command = [*programs.or_skip("checkov"), "--directory", str(ROOT), "--framework", "terraform", "--output", "json"]
    quiet = ["--quiet", "--compact", "--skip-download", "--download-external-modules", "false"]
    environ = {**os.environ, "LOG_LEVEL": "ERROR", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([*command, *quiet], capture_output=True, text=True, timeout=300, check=False, env=environ)
    results = json.loads(done.stdout)
    assert results["summary"]["passed"] > 0
    assert results["summary"]["parsing_errors"] == 0
    found = {
        f"{check['check_id']} {_address(check)}": check["check_name"] for check in results["results"]["failed_checks"]
    }
    assert {key: name for key, name in found.items() if key not in accepted} == {}
    assert sorted(key for key in accepted if key not in found) == [], "accepted, but found no more"


def _address(check: dict[str, str]) -> str:
    """The module and the resource, as in ``edge aws_lb.this``, wherever the module is called from."""
    resource = ".".join(check["resource"].split(".")[-2:])
    return f"{Path(check['file_path']).parent.name} {resource.partition('[')[0]}"


def test_every_reason_is_a_sentence() -> None:
    accepted: dict[str, str] = json.loads(BASELINE.read_text())["accepted"]
    assert len(accepted) <= 40, "the baseline is to be short"
    assert [key for key, reason in accepted.items() if not re.fullmatch(r"[A-Z].{20,}\.", reason)] == []


@pytest.mark.parametrize(
    "folder", [f"modules/{each}" for each in MODULES] + [f"environments/{each}" for each in ENVIRONMENTS]
)
def test_every_folder_has_its_files_and_says_its_variables(folder: str) -> None:
    assert [name for name in FILES if not (ROOT / folder / name).exists()] == []
    texts = [(ROOT / folder / name).read_text() for name in ("variables.tf", "outputs.tf")]
    for declared in terraform_pages.declared("\n".join(texts)):
        assert re.fullmatch(r"[A-Z].*[.)\]e-l]", declared.description), f"{declared.name} is not described"


def test_every_module_but_the_whole_has_tests_of_its_own() -> None:
    tested = {path.name.removesuffix(".tftest.hcl") for path in (ROOT / "tests").glob("*.tftest.hcl")}
    assert sorted({*tested, "platform"}) == MODULES
    for path in ROOT.rglob("*.tftest.hcl"):
        assert "mock_provider" in path.read_text()


def test_the_pages_say_what_the_files_do() -> None:
    assert terraform_pages.outdated() == []


def test_the_environments_have_the_same_variables() -> None:
    texts = {(ROOT / "environments" / each / "variables.tf").read_text() for each in ENVIRONMENTS}
    assert len(texts) == 1


def test_no_secret_is_given_to_terraform_by_name_in_a_file() -> None:
    for path in (ROOT / "environments").rglob("*.tfvars*"):
        assert not re.search(r"password|token|secret|pepper", path.read_text()), f"{path} holds a secret"


def test_the_schema_of_a_resource_is_read_from_its_bindings() -> None:
    code = """
class ThingPartOutputReference extends cdktf.ComplexObject {
    get size() {
        return this.getNumberAttribute('size');
    }
    set size(value) {
    }
}
function thingPartToHclTerraform(struct) {
    const attrs = {
        size: {
            value: cdktf.numberToHclTerraform(struct.size),
            isBlock: false,
            type: "simple",
            storageClassType: "number",
        },
    };
}
class Thing extends cdktf.TerraformResource {
    constructor(scope, id, config) {
        super(scope, id, {
            terraformResourceType: 'aws_thing',
        });
        // part - computed: false, optional: false, required: true
        this._part = new ThingPartOutputReference(this, "part");
    }
    // arn - computed: true, optional: false, required: false
    get arn() {
        return this.getStringAttribute('arn');
    }
    get zones() {
        return cdktf.Fn.tolist(this.getListAttribute('zones'));
    }
    set zones(value) {
    }
    resetZones() {
    }
    synthesizeHclAttributes() {
        const attrs = {
            zones: {
                value: cdktf.listMapperHcl(cdktf.stringToHclTerraform, false)(this._zones),
                isBlock: false,
                type: "set",
                storageClassType: "stringList",
            },
            part: {
                value: thingPartToHclTerraform(this._part.internalValue),
                isBlock: true,
                type: "list",
                storageClassType: "ThingPartList",
            },
        };
    }
}
"""
    block = schema.read(code)
    assert block.attributes == {
        "arn": schema.Attribute(type="string", computed=True),
        "zones": schema.Attribute(type=["set", "string"], optional=True),
    }
    part = schema.Block(attributes={"size": schema.Attribute(type="number", required=True)})
    assert block.blocks == {"part": schema.Nested(part, "list", least=1, most=1)}

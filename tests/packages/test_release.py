"""What happens at a tag: notes from the changelog, and workflows that run what is there with the rights they need."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.journeys.server import REPOSITORY

WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (REPOSITORY / "Makefile").read_text("utf-8")
CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-02\n\n### Added\n\n- A thing.\n\n## [1.1.0]\n\n- Old.\n"
)


@pytest.fixture(scope="module")
def release_notes() -> Any:
    spec = importlib.util.spec_from_file_location("release_notes", REPOSITORY / "scripts" / "release_notes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_notes_of_a_version_are_its_section(release_notes: Any) -> None:
    assert release_notes.notes(CHANGELOG, "v1.2.0") == "### Added\n\n- A thing.\n"


@pytest.mark.parametrize(
    ("version", "told"), [("v2.0.0", "no section"), ("v1.1.0", "has no date"), ("v1.2", "no section")]
)
def test_a_tag_without_notes_is_not_released(release_notes: Any, version: str, told: str) -> None:
    with pytest.raises(LookupError, match=told):
        release_notes.notes(CHANGELOG, version)


def test_the_projects_own_changelog_can_be_read(release_notes: Any) -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text("utf-8").replace("## [Unreleased]", "## [9.9.9] - 2026-01-01")
    assert "### Added" in release_notes.notes(text, "v9.9.9")


def steps(file: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(file.read_text("utf-8"))["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_runs_words_and_scripts_that_are_there(file: Path) -> None:
    for step in steps(file):
        text = step.get("run", "")
        for word in re.findall(r"\bmake ([a-z-]+)", text):
            assert re.search(rf"^{word}:", MAKEFILE, re.MULTILINE), word
        for script in re.findall(r"(?<![\w/])(?:scripts|deploy)/[\w./-]+", text + str(step.get("with", ""))):
            assert (REPOSITORY / script).exists(), script
        if used := step.get("uses"):
            assert re.fullmatch(r"[\w-]+/[\w./-]+@(v\d+|release/v1)", used), used


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_may_read_alone_unless_a_job_says_otherwise_and_every_job_ends(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job["timeout-minutes"] <= 300, name
        wide = {right for right, level in job.get("permissions", {}).items() if level == "write"}
        assert not wide or (file.name == "release.yml" and name in {"images", "publish"}), name


def test_a_job_may_write_attestations_only_where_a_step_attests() -> None:
    jobs = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]
    for name, job in jobs.items():
        attests = any(step.get("uses", "").startswith("actions/attest-") for step in job["steps"])
        assert ("attestations" in job.get("permissions", {})) is attests, name


def test_a_release_is_built_once_tested_on_both_kinds_of_machine_and_published_without_a_password() -> None:
    file = REPOSITORY / ".github" / "workflows" / "release.yml"
    jobs = yaml.safe_load(file.read_text("utf-8"))["jobs"]
    assert jobs["test"]["needs"] == "build"
    assert jobs["publish"]["needs"] == ["test", "images"]
    assert jobs["test"]["strategy"]["matrix"]["machine"] == ["ubuntu-24.04", "ubuntu-24.04-arm"]
    used = [step.get("uses", "").partition("@")[0] for step in jobs["publish"]["steps"]]
    assert used.index("actions/attest-build-provenance") < used.index("pypa/gh-action-pypi-publish")
    secrets = set(re.findall(r"secrets\.(\w+)", file.read_text("utf-8")))
    assert secrets <= {"GITHUB_TOKEN"}

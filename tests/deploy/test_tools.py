"""The pinned tools are there and are the versions that the lock says."""

import platform
import re
import shutil
from pathlib import Path

import pytest

from tests.deploy import tools
from tests.deploy.__main__ import Check, Reporter, first_sentence, found, name_of

QUICK = {"hadolint": ("--version", "2.15.1")}
"""Those that answer at once; what the others do, their checks show."""


@pytest.mark.parametrize("name", QUICK)
def test_a_tool_runs_and_says_its_pinned_version(name: str) -> None:
    arguments, version = QUICK[name]
    done = tools.run(name, *arguments.split())
    assert done.returncode == 0, done.stderr
    assert version in done.stdout


def test_every_tool_is_pinned_to_one_version() -> None:
    packages = [package for name in tools.names() for package in tools._lock()[name].packages]
    assert packages
    assert [each for each in packages if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", each)] == []


def test_a_program_for_another_processor_without_an_emulator_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(tools.Missing, match="install qemu-user-static"):
        tools._emulator(tools._lock()["helm"])


def test_every_check_says_in_a_sentence_what_it_checks() -> None:
    files = found()
    assert Path(__file__) in files
    assert [name_of(each) for each in files if not first_sentence(each)] == []
    assert found(["tools"]) == [Path(__file__)]


def test_results_of_two_files_of_one_name_are_counted_apart() -> None:
    tests = Path(__file__).parents[1]
    checks = [Check(tests / folder / "test_rules.py", "What it says") for folder in ("edge", "monitoring")]
    reporter = Reporter(checks)
    nodes = (
        "tests/edge/test_rules.py::test_a",
        "tests/edge/test_rules.py::test_b",
        "tests/monitoring/test_rules.py::test_a",
    )
    for node in nodes:
        reporter.pytest_runtest_logreport(pytest.TestReport(node, ("", 0, ""), {}, "passed", None, "call"))
    assert [each.passed for each in checks] == [2, 1]
    assert all(" rules " in each.line for each in checks)


def test_whoever_checks_everything_in_deploy_has_every_server_installed_first() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    (needs,) = re.findall(r"^check-deploy:(.*?)##", makefile, re.MULTILINE)
    assert {"install-services", "install-edge"} <= set(needs.split())

"""The files of a monitoring stack, as they are written by the command and kept in the repository."""

import subprocess
import sys
from pathlib import Path

import yaml

from axon.monitoring.files import files, write
from axon.monitoring.rules import rule_file
from tests.console.program import Axon
from tests.monitoring.test_rules import promtool

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_repository_has_what_the_code_makes() -> None:
    checked = subprocess.run(
        [sys.executable, "scripts/monitoring.py", "--check"], cwd=REPOSITORY, capture_output=True, text=True, timeout=60
    )
    assert checked.returncode == 0, checked.stderr


def test_the_command_writes_all_of_them_with_the_runbooks_where_they_are_published(tmp_path: Path) -> None:
    ran = Axon(tmp_path)("monitoring", str(tmp_path / "made"), "--runbooks", "https://wiki.example/r")
    assert ran.returncode == 0, ran.stderr
    made = {str(path.relative_to(tmp_path / "made")): path.read_text() for path in (tmp_path / "made").rglob("*.*")}
    assert made == files(runbooks="https://wiki.example/r")
    assert "https://wiki.example/r/AxonWalLag.md" in made["prometheus/rules.yaml"]
    assert str(tmp_path / "made" / "prometheus" / "rules.yaml") in ran.stdout


def test_a_folder_that_cannot_be_written_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = Axon(tmp_path)("monitoring", str(tmp_path / "file"))
    assert ran.returncode != 0
    assert "cannot be written" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_prometheus_accepts_the_configuration(tmp_path: Path) -> None:
    write(tmp_path, files())
    checked = promtool("check", "config", str(tmp_path / "prometheus" / "prometheus.yaml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert yaml.safe_load((tmp_path / "prometheus" / "rules.yaml").read_text()) == rule_file()

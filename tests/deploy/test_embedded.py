"""The unit of one host: systemd takes it, it gives the process little, and its settings are the code's."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from axon.settings import describe, load
from tests.journeys.server import REPOSITORY

FOLDER = REPOSITORY / "deploy" / "embedded"
UNIT = (FOLDER / "axon.service").read_text("utf-8")
MOST_EXPOSED = 25
"""Tenths that `systemd-analyze security` may count, of 100: without rights and filters a unit has 96."""


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program that is there."""
    (file := tmp_path / "axon.service").write_text(UNIT.replace("/opt/axon/bin/axon", "/bin/true"))
    return file


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here: it comes with systemd")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True)


def test_systemd_takes_every_line(unit: Path) -> None:
    ran = analyze("verify", "--recursive-errors=no", str(unit))
    assert ran.returncode == 0, ran.stderr
    assert "axon.service" not in ran.stderr
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSystm=strict"))
    assert "ProtectSystm" in analyze("verify", "--recursive-errors=no", str(unit)).stderr


def test_the_process_is_exposed_to_little(unit: Path) -> None:
    ran = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", "--no-pager", str(unit))
    assert ran.returncode == 0, ran.stdout[-300:] + ran.stderr


def test_the_sample_has_settings_of_the_code_and_listens_on_loopback() -> None:
    loaded = load(environ={}, file=FOLDER / "axon.toml")
    assert loaded.settings.gateway.host == loaded.settings.gateway.metrics_host == "127.0.0.1"
    assert [name for name, origin in loaded.origins.items() if origin.endswith("axon.toml")]


def test_the_unit_gives_more_time_than_a_drain_takes_and_names_no_strange_setting() -> None:
    lifecycle = load(environ={}, file=FOLDER / "axon.toml").settings.lifecycle
    found = re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert found is not None
    assert int(found[1]) > lifecycle.notice_s + lifecycle.drain_s
    known = {each.variable for each in describe()}
    assert set(re.findall(r"AXON_[A-Z_]+", UNIT)) <= known


def test_the_unit_and_its_page_name_the_same_places() -> None:
    page = (FOLDER / "README.md").read_text("utf-8")
    for place in ("/opt/axon", "/etc/axon/axon.toml", "/var/lib/axon"):
        assert place in UNIT
        assert place in page

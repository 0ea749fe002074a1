"""Every shell script of the repository, and the one of the chart's backup, is clean by shellcheck."""

import subprocess
from pathlib import Path

import pytest

from tests.deploy import tools
from tests.deploy.chart import AWS, KEPT_AND_COPIED, told_once
from tests.deploy.test_chart_backup import backup_of

ROOT = Path(__file__).resolve().parents[2]
_SHELLS = (b"#!/bin/sh", b"#!/bin/bash", b"#!/usr/bin/env sh", b"#!/usr/bin/env bash")


def scripts() -> list[Path]:
    """The files in version control that a shell runs."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, timeout=60, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no git checkout")
    files = [ROOT / name.decode() for name in listed.stdout.split(b"\0") if name]
    return [path for path in files if path.is_file() and _first_line(path).startswith(_SHELLS)]


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.readline(80)


def _complaints(files: list[Path]) -> str:
    """What shellcheck finds in them, which is kept by their content."""
    tools.require("shellcheck")
    given = ([path.read_text() for path in files], tools.LOCK.read_text())

    def tell() -> str:
        done = tools.run("shellcheck", *map(str, files))
        assert done.returncode in (0, 1), done.stderr
        assert bool(done.stdout) == bool(done.returncode)
        return done.stdout

    return told_once("shellcheck", given, tell)


def test_shellcheck_finds_nothing() -> None:
    found = scripts()
    assert {"run", "make-env", "install-services", "build-wheels"} <= {path.name for path in found}
    assert _complaints(found) == ""


def test_shellcheck_would_find_something(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nrm -r $1\n")
    assert "SC2086" in _complaints([script])


def test_shellcheck_finds_nothing_in_the_backups_of_the_chart(tmp_path: Path) -> None:
    found = []
    for values in ("ha", KEPT_AND_COPIED, AWS):
        (text,) = backup_of(values).container["args"]
        found.append(tmp_path / values)
        found[-1].write_text(f"#!/bin/sh\nset -eu\n{text}\n")
    assert _complaints(found) == ""

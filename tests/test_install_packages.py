"""Every package of a lock is installed once, by two at a time."""

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "install-packages"
PYTHON = """#!/usr/bin/env bash
for last; do :; done
echo "$* | $(grep -v '^#' "$last" | tr '\\n' ' ')" >>"$0.asked"
[ "$(grep -c broken "$last")" = 0 ]
"""


def install(folder: Path, lock: str, *options: str) -> tuple[int, list[tuple[str, list[str]]]]:
    """The exit code, and what each pip was told and asked for."""
    python, names = folder / "python", folder / "lock"
    python.write_text(PYTHON)
    python.chmod(0o755)
    names.write_text(lock)
    done = subprocess.run([SCRIPT, python, names, *options], capture_output=True, text=True, timeout=60, check=False)
    asked = [line.split(" | ") for line in (folder / "python.asked").read_text().splitlines()]
    return done.returncode, [(said, packages.split()) for said, packages in asked]


def test_each_half_is_installed_by_itself_and_then_what_is_missing(tmp_path: Path) -> None:
    code, asked = install(tmp_path, "# written\na==1\nb==2\nc==3\n", "--quiet")
    assert code == 0
    *halves, (whole, packages) = asked
    assert sorted(name for _, names in halves for name in names) == ["a==1", "b==2", "c==3"]
    assert len(halves) == 2
    assert all("--no-deps --quiet" in said for said, _ in halves)
    assert "--no-deps" not in whole
    assert packages == ["a==1", "b==2", "c==3"]


def test_a_package_that_cannot_be_had_fails(tmp_path: Path) -> None:
    code, asked = install(tmp_path, "a==1\nbroken==2\n")
    assert code == 1
    assert len(asked) <= 2, "nothing is tried again"

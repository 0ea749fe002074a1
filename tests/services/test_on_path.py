"""A script's ``axon`` is the program, with the script's own arguments, environment, folder and streams."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import warm
from tests.services.on_path import axon_on_path


@pytest.fixture(params=["forked", "cold"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "cold":
        monkeypatch.setattr(warm, "_enabled", False)
    with axon_on_path() as path:
        yield path


def sh(script: str, folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-euc", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False
    )


def test_it_does_what_it_is_told_and_a_pipe_gets_what_it_says(path: str, tmp_path: Path) -> None:
    told = "axon keys create --tenant acme > key; axon keys list | grep -c acme; ls data"
    done = sh(told, tmp_path, PATH=path, AXON_DATA_DIR="data", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "1"
    assert (tmp_path / "key").read_text()
    assert "axon.db" in done.stdout


def test_its_failure_ends_the_script(path: str, tmp_path: Path) -> None:
    done = sh("axon no-such-word; echo later", tmp_path, PATH=path, AXON_DATA_DIR="data", HOME=str(tmp_path))
    assert done.returncode == 2
    assert "no-such-word" in done.stderr
    assert "later" not in done.stdout

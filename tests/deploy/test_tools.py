"""The pinned tools are there and are the versions that the lock says."""

import platform
import re
import shutil
from pathlib import Path

import pytest

from tests.deploy import tools
from tests.deploy.__main__ import first_sentence, found, name_of

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

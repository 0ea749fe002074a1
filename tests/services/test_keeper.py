"""Servers that tests share are started once, whatever the test is about that needs them first."""

import builtins
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.services.keeper import shared

ROOT = Path(__file__).resolve().parents[2]
OWN = os.getpid()  # when this is imported, a keeper is not there yet


@dataclass(frozen=True)
class Made:
    pid: int
    opened: str
    name: str
    is_large: bool


@shared
def made(name: str, *, is_large: bool = False) -> Made:
    """Says where it ran; it could not run where files cannot be opened."""
    with open("/proc/self/comm") as file:
        return Made(pid=os.getpid(), opened=file.read(), name=name, is_large=is_large)


@shared
def never_made() -> None:
    raise OSError("no room")


@shared
def skipped() -> None:
    pytest.skip("not installed")


def refuse(*_: object, **__: object) -> None:
    raise OSError("files cannot be opened")


async def test_it_is_made_elsewhere_where_no_test_has_changed_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "open", refuse)
    first = made("patched")
    assert first.pid not in (OWN, os.getpid())
    assert first.opened


def test_it_is_made_once_however_it_is_asked_for() -> None:
    assert made("a") is made(name="a") is made("a", is_large=False)
    assert made("a", is_large=True) == Made(pid=made("a").pid, opened=made("a").opened, name="a", is_large=True)


@pytest.mark.parametrize(("make", "error"), [(never_made, OSError), (skipped, pytest.skip.Exception)])
def test_what_went_wrong_is_told_as_it_was(make: Callable[[], None], error: type[BaseException]) -> None:
    with pytest.raises(error, match=r"no room|not installed"):
        make()


PROGRAM = """
import atexit, os, pathlib, sys
from tests.services import keeper

def note(what):
    with open(sys.argv[1], "a") as notes:
        notes.write(what + "\\n")

@keeper.shared
def made():
    note("made")
    atexit.register(note, "ended")
    return os.getpid()

here = made()
assert here == os.getpid(), "without a keeper it is made where it is asked for"
sys.modules["program"] = sys.modules["__main__"]

@keeper.shared
def kept():
    note("kept")
    atexit.register(note, "let go")
    return os.getpid()

kept.__wrapped__.__module__ = "program"
keeper.open_keeper()
if child := os.fork():
    os.waitpid(child, 0)
    assert kept() != os.getpid()
    note("over")
else:
    kept()
    os._exit(0)
"""


def test_processes_of_a_run_share_it_and_it_ends_with_the_run(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", PROGRAM, str(notes)], env=environ, check=True, timeout=60)
    assert notes.read_text().split("\n") == ["made", "kept", "over", "let go", "ended", ""]

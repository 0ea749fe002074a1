"""Where the clients' environments are, and when they are made."""

import os
from pathlib import Path

import pytest

from tests.conformance import clients


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The environments that were made, in a cache and of pins of the test's own; none is really installed."""
    names: list[str] = []

    def make(folder: Path, pins: list[str]) -> None:
        names.append(folder.name)
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").touch()

    monkeypatch.setattr(clients, "_make", make)
    monkeypatch.setattr(clients, "ENVIRONMENTS", tmp_path / "cache")
    monkeypatch.setattr(clients, "REQUIREMENTS", tmp_path)
    (tmp_path / "some.txt").write_text("some==1.0\n")
    return names


def test_an_environment_is_made_once(made: list[str]) -> None:
    first, second = clients.environment_of("some"), clients.environment_of("some")
    assert first == second
    assert made == [first.name]


def test_other_pins_get_an_environment_of_their_own(made: list[str], tmp_path: Path) -> None:
    first = clients.environment_of("some")
    (tmp_path / "some.txt").write_text("some==1.1\n")
    second = clients.environment_of("some")
    assert made == [first.name, second.name]
    assert first != second


def test_an_environment_whose_making_was_cut_short_is_made_again(made: list[str]) -> None:
    folder = clients.environment_of("some")
    (folder / ".installed").unlink()
    (folder / "bin" / "python").unlink()
    (folder / "bin").rmdir()
    folder.rmdir()
    folder.mkdir()
    clients.environment_of("some")
    assert len(made) == 2


def test_an_environment_that_nobody_has_used_for_a_month_is_removed(made: list[str], tmp_path: Path) -> None:
    old = clients.environment_of("some")
    (tmp_path / "some.txt").write_text("some==1.1\n")
    new = clients.environment_of("some")
    used = (new / ".installed").stat().st_mtime
    os.utime(old / ".installed", (used - 31 * 24 * 3600, used - 31 * 24 * 3600))
    assert clients.remove_unused(used) == [old.name]
    assert (old.exists(), new.exists()) == (False, True)

"""What an operator types, and where it leads: files and folders are what their names say, and none appear unasked."""

from pathlib import Path

import pytest

from axon.console.backup.archive_target import target_of
from axon.console.backup.facts import bytes_text, counted
from axon.errors import Misconfigured
from tests.backup.places import Place
from tests.console.program import Axon

pytestmark = pytest.mark.parametrize("kind", ["sqlite"])


@pytest.mark.parametrize("name", ["new/", "new/deep/", "new.backup/"])
def test_a_slash_at_the_end_makes_a_folder(name: str, place: Place, axon: Axon, tmp_path: Path) -> None:
    made = axon("backup", "create", name, **place.environ)
    assert made.returncode == 0, made.stderr
    [path] = (tmp_path / name).iterdir()
    assert path.name.startswith("axon-")
    assert path.suffix == ".backup"
    assert (tmp_path / name).stat().st_mode & 0o077 == 0
    assert "1 file of" in made.stdout
    assert " kB, from sqlite" in made.stdout


def test_a_name_that_may_be_a_folder_or_a_file_is_asked_about(place: Place, axon: Axon, tmp_path: Path) -> None:
    refused = axon("backup", "create", "backups", **place.environ)
    assert refused.returncode == 2
    assert "There is no folder backups: to make it, end it with a slash (backups/)" in refused.stderr
    assert not (tmp_path / "backups").exists()
    (tmp_path / "backups").mkdir()
    assert axon("backup", "create", "backups", **place.environ).returncode == 0
    assert len(list((tmp_path / "backups").iterdir())) == 1
    refused = axon("backup", "create", "nowhere/one.backup", **place.environ)
    assert "There is no folder nowhere for one.backup" in refused.stderr


def test_a_folder_that_was_made_for_nothing_goes_again(kind: str, axon: Axon, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    refused = axon("backup", "create", "old/new/deep/")
    assert refused.returncode == 2
    assert "There is no store" in refused.stderr
    assert list((tmp_path / "old").iterdir()) == []


def test_a_file_is_no_folder(kind: str, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("here")
    for name in (f"{tmp_path}/one/", f"{tmp_path}/one/two/"):
        with pytest.raises(Misconfigured, match=r"is a file|cannot be made"), target_of(name):
            raise AssertionError(name)
    with target_of(f"{tmp_path}/one") as target:
        assert target == tmp_path / "one", "which the archive then refuses to replace"
    assert (tmp_path / "one").read_text() == "here"


def test_a_restore_makes_no_folder_but_the_data_folder(place: Place, axon: Axon, tmp_path: Path) -> None:
    assert axon("backup", "create", "one.backup", **place.environ).returncode == 0
    missing = tmp_path / "mistyped" / "deep"
    refused = axon("backup", "restore", "one.backup", "--store", f"sqlite:///{missing}/axon.db")
    assert refused.returncode == 2
    assert f"There is no folder {missing} for the store" in refused.stderr
    assert not missing.parent.exists()
    assert not (tmp_path / "data").exists()
    for more in (("--data-dir", str(missing)), ("--store", "sqlite:///data/axon.db", "--data-dir", "data")):
        restored = axon("backup", "restore", "one.backup", *more)
        assert restored.returncode == 0, restored.stderr
    assert (missing / "axon.db").exists()
    assert "The store is that of one.backup" in restored.stdout
    assert "Not in it" not in restored.stdout


def test_settling_what_is_not_there_leaves_nothing(kind: str, axon: Axon, tmp_path: Path) -> None:
    refused = axon("backup", "settle", "--data-dir", "none")
    assert refused.returncode == 2
    assert "There is no store at" in refused.stderr
    assert list(tmp_path.iterdir()) == []


def test_amounts_are_told_as_a_person_would(kind: str) -> None:
    assert [counted(number, "file") for number in (0, 1, 2_000)] == ["0 files", "1 file", "2,000 files"]
    assert [bytes_text(number) for number in (0, 17_408, 2_500_000)] == ["0.0 kB", "17.4 kB", "2.5 MB"]

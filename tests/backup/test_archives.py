"""An archive that is not as it was written is refused by name of what is wrong, before anything is changed."""

import random
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from axon.adapters.backup import rows
from axon.adapters.backup.reading import Archive
from axon.adapters.backup.writing import ArchiveWriter, new_archive
from axon.bootstrap.backups import create_backup, restore_backup, verify_backup
from axon.domain.backup import FORMAT, ColumnFacts, RestoreOptions, TableFacts
from axon.errors import AxonError, InvalidInput, Misconfigured
from tests.backup.places import Place, sqlite_place
from tests.long import share, some


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with sqlite_place(tmp_path_factory.mktemp("place")) as place:
        place.fill()
        yield place


@pytest.fixture(scope="module")
def whole(place: Place) -> bytes:
    path = place.data_dir / "one.backup"
    create_backup(place.settings, path)
    return path.read_bytes()


def _restore(data: bytes, folder: Path) -> None:
    path = folder / "tried.backup"
    path.write_bytes(data)
    with sqlite_place(folder / "target") as target:
        restore_backup(target.settings, path, RestoreOptions())


def test_any_changed_byte_that_matters_is_noticed(whole: bytes, tmp_path: Path) -> None:
    """A byte of a member or a header; those that pad a member to a block are nobody's."""
    draw, refused = random.Random(7), 0
    for _ in range(int(share(120))):
        at = draw.randrange(len(whole))
        changed = whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1 :]
        try:
            _restore(changed, tmp_path)
        except AxonError:
            refused += 1
            assert not (tmp_path / "target" / "axon.db").exists()
        else:
            _same_members(changed, whole, tmp_path)
            (tmp_path / "target" / "axon.db").unlink()
    assert refused


def _same_members(changed: bytes, whole: bytes, folder: Path) -> None:
    found = []
    for data in (changed, whole):
        (folder / "members.tar").write_bytes(data)
        with tarfile.open(folder / "members.tar") as tar:
            found.append([(each.name, tar.extractfile(each).read()) for each in tar])  # type: ignore[union-attr]
    assert found[0] == found[1]


def test_an_archive_that_is_cut_off_anywhere_is_refused(whole: bytes, tmp_path: Path) -> None:
    end = whole.rindex(b"manifest.sha256") + 512
    for length in some([*range(0, end, max(1, end // 50)), end]):
        with pytest.raises(AxonError):
            _restore(whole[:length], tmp_path)


@pytest.mark.parametrize("data", [b"", b"age-encryption.org/v1\n" * 100, bytes(10240)], ids=["empty", "other", "zeros"])
def test_another_file_is_no_backup(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be used"):
        _restore(data, tmp_path)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="cannot be read"):
        verify_backup(tmp_path / "none.backup")


def test_a_later_format_is_refused_by_its_number(place: Place, whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "one.backup").write_bytes(whole)
    manifest = Archive(tmp_path / "one.backup").check()
    with (tmp_path / "later.backup").open("wb") as file:
        ArchiveWriter(file, at=0.0).finish(replace(manifest, format=FORMAT + 1, parts=()))
    with pytest.raises(InvalidInput, match=f"format {FORMAT + 1}"):
        verify_backup(tmp_path / "later.backup")


def test_a_later_migration_is_refused_by_its_number(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "one.backup").write_bytes(whole)
    manifest = Archive(tmp_path / "one.backup").check()
    with (tmp_path / "later.backup").open("wb") as file:
        ArchiveWriter(file, at=0.0).finish(replace(manifest, revision="9999", tables=(), parts=()))
    with pytest.raises(Misconfigured, match="9999"):
        verify_backup(tmp_path / "later.backup")


@pytest.mark.parametrize(
    ("table", "column", "kind", "why"),
    [
        ("turns (id) FROM PROGRAM 'id' --", "id", "text", "no name of a table"),
        ("turns", 'id" FROM PROGRAM', "text", "no name of a table"),
        ("turns", "id", "program", "no kind of a column"),
    ],
)
def test_names_of_a_forged_manifest_reach_no_statement(
    whole: bytes, tmp_path: Path, table: str, column: str, kind: str, why: str
) -> None:
    (tmp_path / "one.backup").write_bytes(whole)
    manifest = Archive(tmp_path / "one.backup").check()
    facts = TableFacts(name=table, columns=(ColumnFacts(name=column, kind=kind),), num_rows=0, digest="")
    with (tmp_path / "forged.backup").open("wb") as file:
        ArchiveWriter(file, at=0.0).finish(replace(manifest, tables=(facts,), parts=()))
    with pytest.raises(InvalidInput, match=why):
        verify_backup(tmp_path / "forged.backup")


def test_a_link_or_a_path_out_of_the_folder_is_refused(whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "one.backup").write_bytes(whole)
    manifest = Archive(tmp_path / "one.backup").check()
    with (tmp_path / "evil.backup").open("wb") as file:
        writer = ArchiveWriter(file, at=0.0)
        writer.add("files/../../../evil/000000", b"bytes")
        writer.finish(replace(manifest, tables=(), parts=tuple(writer.parts), pepper=None))
    with sqlite_place(tmp_path / "target") as target, pytest.raises(InvalidInput, match="none of Axon's"):
        restore_backup(target.settings, tmp_path / "evil.backup", RestoreOptions())
    assert not list(tmp_path.parent.rglob("evil"))


def test_a_backup_never_replaces_a_file(place: Place, tmp_path: Path) -> None:
    (tmp_path / "there.backup").write_text("mine")
    with pytest.raises(Misconfigured, match="exists already"):
        create_backup(place.settings, tmp_path / "there.backup")
    with pytest.raises(Misconfigured, match="exists already"), new_archive(tmp_path / "raced.backup"):
        (tmp_path / "raced.backup").write_text("mine")
    assert (tmp_path / "there.backup").read_text() == (tmp_path / "raced.backup").read_text() == "mine"


def test_rows_keep_their_values_and_their_sum_knows_no_order() -> None:
    values = [("a", 1, 2.5, True, b"\x00\xff", None), ("größer 🦀", -(1 << 62), float("inf"), False, b"", "x")]
    sums = rows.RowSum(), rows.RowSum()
    parts = [list(rows.packed(each, total)) for each, total in zip((values, values[::-1]), sums, strict=True)]
    assert [tuple(row) for part in parts[0] for row in rows.unpacked(part, num_columns=6)] == values
    assert sums[0].digest == sums[1].digest
    assert sums[0].num_rows == 2
    other = rows.RowSum()
    list(rows.packed([values[0], values[0]], other))
    assert other.digest != sums[0].digest


def test_parts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "PART_BYTES", 1000)
    parts = list(rows.packed([("x" * 100,)] * 95, rows.RowSum()))
    assert [len(list(rows.unpacked(part, num_columns=1))) for part in parts] == [10] * 9 + [5]

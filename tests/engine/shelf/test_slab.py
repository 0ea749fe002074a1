"""A slab gives back what was written, or nothing: never another block, never half of one."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axon.engine.schedule.shelf_files import Place
from axon.engine.shelf.slab import BLOCKS, INDEX, Slab

MODEL, OTHER = b"m" * 32, b"o" * 32
SIZE = 5000


def open_slab(folder: Path, *, fingerprint: bytes = MODEL, num_places: int = 4, block_bytes: int = SIZE) -> Slab:
    return Slab(folder, fingerprint=fingerprint, block_bytes=block_bytes, num_places=num_places)


def block(number: int) -> bytes:
    return bytes((number + index) % 251 for index in range(SIZE))


def place(number: int, tag: bytes = b"") -> Place:
    return Place(number, bytes([number]) * 16, tag, 1000.0 + number)


def filled(folder: Path, *numbers: int) -> Slab:
    slab = open_slab(folder)
    for number in numbers:
        slab.write(place(number, b"t" * 16 if number % 2 else b""), memoryview(block(number)))
    return slab


def read(slab: Slab, where: Place) -> bytes | None:
    into = bytearray(SIZE)
    return bytes(into) if slab.read(where, memoryview(into)) else None


def test_what_was_written_is_there_after_it_is_opened_again(tmp_path: Path) -> None:
    filled(tmp_path, 0, 1, 3).close()
    slab = open_slab(tmp_path)
    assert list(slab.contents()) == [place(0), place(1, b"t" * 16), place(3, b"t" * 16)]
    assert [read(slab, place(number)) for number in (0, 1, 3)] == [block(0), block(1), block(3)]
    assert read(slab, place(2)) is None
    slab.close()


def test_another_block_in_the_place_is_not_taken_for_it(tmp_path: Path) -> None:
    slab = filled(tmp_path, 1)
    assert read(slab, Place(1, b"x" * 16, b"", 0.0)) is None
    slab.close()


@pytest.mark.parametrize("change", [{"fingerprint": OTHER}, {"block_bytes": SIZE + 1}])
def test_files_of_another_model_are_thrown_away(tmp_path: Path, change: dict[str, object]) -> None:
    filled(tmp_path, 0, 1).close()
    slab = open_slab(tmp_path, **change)  # type: ignore[arg-type]
    assert list(slab.contents()) == []
    assert (tmp_path / BLOCKS).stat().st_size == 0
    slab.close()


def test_fewer_places_cut_the_files(tmp_path: Path) -> None:
    filled(tmp_path, 0, 1, 2, 3).close()
    slab = open_slab(tmp_path, num_places=2)
    assert list(slab.contents()) == [place(0), place(1, b"t" * 16)]
    assert (tmp_path / BLOCKS).stat().st_size <= 2 * 8192
    slab.close()


def test_what_is_erased_is_overwritten(tmp_path: Path) -> None:
    slab = filled(tmp_path, 0, 1)
    slab.erase(1)
    slab.close()
    assert block(1) not in (tmp_path / BLOCKS).read_bytes()
    assert place(1).key not in (tmp_path / INDEX).read_bytes()
    again = open_slab(tmp_path)
    assert list(again.contents()) == [place(0)]
    again.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from([INDEX, BLOCKS]), at=st.integers(0, 40_000), flip=st.integers(1, 255), cut=st.booleans())
def test_one_wrong_byte_or_a_cut_file_never_gives_a_wrong_block(
    tmp_path: Path, name: str, at: int, flip: int, cut: bool
) -> None:
    for path in tmp_path.iterdir():
        path.unlink()
    filled(tmp_path, 0, 1, 2).close()
    path = tmp_path / name
    content = bytearray(path.read_bytes())
    at %= len(content)
    if cut:
        content = content[:at]
    else:
        content[at] ^= flip
    path.write_bytes(content)
    slab = open_slab(tmp_path)
    for found in list(slab.contents()):
        assert found.number in (0, 1, 2)
        assert found.key == place(found.number).key
        assert read(slab, found) in (None, block(found.number))
    slab.close()


def test_a_full_disk_is_an_error_of_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slab = open_slab(tmp_path)

    def refuse(descriptor: int, data: object, offset: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(OSError, match="No space"):
        slab.write(place(0), memoryview(block(0)))
    monkeypatch.undo()
    assert read(slab, place(0)) is None
    slab.close()

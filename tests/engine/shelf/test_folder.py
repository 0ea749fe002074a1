"""Blocks go to the folder and come back beside the steps; each engine has a folder, and old ones go."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from axon.engine.config import EngineConfig
from axon.engine.echo import EchoEngine
from axon.engine.schedule.shelf_files import News, Place
from axon.engine.shelf.folder import FolderFiles
from axon.engine.shelf.home import sweep, take_home
from axon.engine.shelf.slab import BLOCKS, Slab
from axon.errors import Misconfigured

SIZE = 4096


def open_files(folder: Path, memory: bytearray) -> FolderFiles:
    home = take_home(folder, "model")
    slab = Slab(home.path, fingerprint=b"f" * 32, block_bytes=SIZE, num_places=4)
    return FolderFiles(home, slab, memoryview(memory))


def wait_for(files: FolderFiles, count: int) -> list[News]:
    news: list[News] = []
    while len(news) < count:
        more = files.news(wait_s=30.0)
        assert more, "the files are silent"
        news += more
    return news


def test_a_slot_is_written_and_read_back(tmp_path: Path) -> None:
    memory = bytearray(os.urandom(SIZE) + bytes(SIZE))
    files = open_files(tmp_path, memory)
    assert list(files.contents()) == []
    where = Place(2, b"k" * 16, b"", 5.0)
    files.write(where, 0)
    assert [(each.key, each.is_read, each.is_good) for each in wait_for(files, 1)] == [(where.key, False, True)]
    files.read(where, 1)
    files.read(Place(3, b"k" * 16, b"", 5.0), 0)
    first, second = wait_for(files, 2)
    assert (first.is_good, second.is_good) == (True, False)
    assert memory[SIZE:] != bytes(SIZE)
    files.close()
    files.close()


def test_what_is_erased_behind_a_write_is_gone(tmp_path: Path) -> None:
    files = open_files(tmp_path, bytearray(b"x" * SIZE))
    files.write(Place(0, b"k" * 16, b"t" * 16, 5.0), 0)
    files.erase(0)
    files.close()
    again = open_files(tmp_path, bytearray(SIZE))
    assert list(again.contents()) == []
    again.close()
    assert b"x" not in (tmp_path / "model" / "0" / BLOCKS).read_bytes()


def test_an_engine_takes_up_the_first_folder_that_nobody_holds(tmp_path: Path) -> None:
    first, second = take_home(tmp_path, "model"), take_home(tmp_path, "model")
    assert (first.path.name, second.path.name) == ("0", "1")
    first.close()
    third = take_home(tmp_path, "model")
    assert third.path == first.path
    for home in (second, third):
        home.close()


def test_the_folder_of_an_engine_whose_worker_has_died_is_waited_for(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    ending = take_home(tmp_path, "model")
    (ending.path / "lock").write_text(str(ended.pid))
    timer = threading.Timer(0.1, ending.close)
    timer.start()
    following = take_home(tmp_path, "model")
    assert following.path == ending.path
    timer.join()
    following.close()


def left_behind(folder: Path, model: str, *, num_bytes: int, at: float) -> Path:
    home = take_home(folder, model)
    (home.path / BLOCKS).write_bytes(b"x" * num_bytes)
    for path in home.path.iterdir():
        os.utime(path, (at, at))
    home.close()
    return home.path


def test_what_engines_have_left_is_bounded_by_age_and_bytes(tmp_path: Path) -> None:
    old = left_behind(tmp_path, "old", num_bytes=SIZE, at=100.0)
    large = left_behind(tmp_path, "large", num_bytes=64 * SIZE, at=900.0)
    small = left_behind(tmp_path, "small", num_bytes=SIZE, at=950.0)
    held = take_home(tmp_path, "held")
    sweep(tmp_path, max_bytes=16 * SIZE, max_age_s=500.0, now=1000.0)
    assert [path.exists() for path in (old, large, small, held.path)] == [False, False, True, True]
    assert not old.parent.exists()
    held.close()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = EngineConfig(kind="echo", kv_folder=str(tmp_path / "file" / "kv"))
    with pytest.raises(Misconfigured, match=r"engine\.kv_folder = .* cannot be used"):
        EchoEngine(config)


@pytest.mark.parametrize("settings", [{"kv_host_bytes": 1}, {"kv_folder": "x", "kv_folder_bytes": 1}])
def test_room_for_no_block_is_said(tmp_path: Path, settings: dict[str, object]) -> None:
    with pytest.raises(Misconfigured, match="holds not even one block"):
        EchoEngine(EngineConfig(kind="echo", **settings))  # type: ignore[arg-type]


def test_files_of_several_ranks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="one rank"):
        EchoEngine(EngineConfig(kind="echo", kv_folder=str(tmp_path), tensor_parallel=2))

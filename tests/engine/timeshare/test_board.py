"""The board of claims: its locks go with their process, and its claims are seen by all."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from axon.engine.timeshare.board import Board, NoBoard
from axon.engine.timeshare.order import Claim, State


@contextmanager
def opened(folder: Path) -> Iterator[Board]:
    board = Board(folder)
    board.open()
    try:
        yield board
    finally:
        board.close()


def test_each_engine_has_a_slot_and_sees_the_claims_of_the_others(tmp_path: Path) -> None:
    with opened(tmp_path / "cores") as one, opened(tmp_path / "cores") as other:
        assert one.slot != other.slot
        one.write(State.WAITING, 1.5)
        assert Claim(slot=one.slot, state=State.WAITING, had_s=1.5) in other.read()


def test_all_see_the_level_and_it_outlives_them(tmp_path: Path) -> None:
    with opened(tmp_path / "cores") as one, opened(tmp_path / "cores") as other:
        assert one.level_s == 0.0
        one.level_s = 12.5
        assert other.level_s == 12.5
    with opened(tmp_path / "cores") as next_one:
        assert next_one.level_s == 12.5


def test_the_turn_is_one_engines_until_it_is_released(tmp_path: Path) -> None:
    with opened(tmp_path / "cores") as one, opened(tmp_path / "cores") as other:
        assert one.try_hold()
        assert not other.try_hold()
        one.release()
        assert other.try_hold()


def test_who_is_woken_wakes_and_who_is_not_does_not(tmp_path: Path) -> None:
    with opened(tmp_path / "cores") as one, opened(tmp_path / "cores") as other:
        one.wake(other.slot)
        assert other.wait(5.0)
        assert not one.wait(0.001)
        one.wake(40)  # nobody is there


_HOLDS_AND_WAITS = """
import sys, time
from pathlib import Path
from axon.engine.timeshare.board import Board
from axon.engine.timeshare.order import State
board = Board(Path(sys.argv[1]))
board.open()
assert board.try_hold()
board.write(State.WAITING, 0.0)
print("holds", flush=True)
time.sleep(600)
"""


def test_the_turn_and_the_claim_of_an_engine_that_was_killed_are_free(tmp_path: Path) -> None:
    folder = tmp_path / "cores"
    with (
        opened(folder) as board,
        subprocess.Popen([sys.executable, "-c", _HOLDS_AND_WAITS, str(folder)], stdout=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"holds\n"
            assert not board.try_hold()
            board.clear_dead()
            assert len(board.read()) == 2  # it lives
        finally:
            process.kill()
            process.wait()
        assert board.try_hold()
        board.clear_dead()
        assert [each.slot for each in board.read()] == [board.slot]


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cores"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(NoBoard, match="does not belong to this user alone"):
        Board(folder).open()


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "cores").symlink_to(tmp_path / "mine")
    with pytest.raises(NoBoard):
        Board(tmp_path / "cores").open()
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_board_that_is_a_link_is_refused_and_what_it_points_to_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "cores").mkdir(mode=0o700)
    (tmp_path / "letter").write_text("dear")
    (tmp_path / "cores" / "board").symlink_to(tmp_path / "letter")
    with pytest.raises(NoBoard):
        Board(tmp_path / "cores").open()
    assert (tmp_path / "letter").read_text() == "dear"


def test_a_folder_is_not_made_below_one_that_is_not_there(tmp_path: Path) -> None:
    """Who made the folder above could put another one in this one's place."""
    with pytest.raises(NoBoard):
        Board(tmp_path / "above" / "cores").open()
    assert not (tmp_path / "above").exists()


def test_an_engine_that_is_there_is_woken_though_the_folder_was_moved(tmp_path: Path) -> None:
    with opened(tmp_path / "cores") as one, opened(tmp_path / "cores") as other:
        (tmp_path / "cores").rename(tmp_path / "elsewhere")
        (tmp_path / "cores").mkdir()
        one.wake(other.slot)
        assert other.wait(5.0)


def test_a_folder_with_a_long_name_has_a_board(tmp_path: Path) -> None:
    """A socket's address has 108 bytes; the set of many cores has a long name."""
    with opened(tmp_path / ("c" * 200)) as one, opened(tmp_path / ("c" * 200)) as other:
        one.wake(other.slot)
        assert other.wait(5.0)


def test_a_full_disk_is_an_error_and_not_the_end_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    num_open = len(os.listdir("/proc/self/fd"))
    with pytest.raises(NoBoard, match="No space left"):
        Board(tmp_path / "cores").open()
    assert len(os.listdir("/proc/self/fd")) == num_open


def test_a_board_that_is_larger_is_not_cut(tmp_path: Path) -> None:
    """Another version's engines have it mapped: a page that is cut off would end them."""
    with opened(tmp_path / "cores"):
        pass
    board = tmp_path / "cores" / "board"
    os.truncate(board, 1 << 16)
    with opened(tmp_path / "cores"):
        assert board.stat().st_size == 1 << 16


def test_a_closed_slot_is_given_to_the_next(tmp_path: Path) -> None:
    with opened(tmp_path / "cores") as one:
        first = one.slot
    with opened(tmp_path / "cores") as other:
        assert other.slot == first
        assert [path.name for path in (tmp_path / "cores").glob("*.sock")] == [f"{first}.sock"]

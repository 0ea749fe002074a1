"""The note of a step: it says who was in it after its writer is gone."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from axon.engine.config import EngineConfig
from axon.engine.echo import EchoEngine
from axon.engine.protocol.crash_note import CrashNote, new_crash_note
from tests.engine.builders import make_add


@pytest.fixture
def fd() -> Iterator[int]:
    fd = new_crash_note()
    yield fd
    os.close(fd)


def test_what_was_written_last_is_read(fd: int) -> None:
    note = CrashNote(fd)
    assert note.read() == frozenset()
    note.write(["1", "2", "3"])
    note.write(["4"])
    assert CrashNote(fd).read() == {"4"}


def test_a_torn_note_says_nothing(fd: int) -> None:
    CrashNote(fd).write(["1", "2"])
    os.ftruncate(fd, 6)
    assert CrashNote(fd).read() == frozenset()


def test_it_outlives_a_process_that_is_killed(fd: int) -> None:
    script = (
        "import os; from axon.engine.protocol.crash_note import CrashNote\n"
        f"CrashNote({fd}).write(['7', '8']); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script], pass_fds=[fd], check=False).returncode == -9
    assert CrashNote(fd).read() == {"7", "8"}


def test_an_engine_tells_before_each_step_who_is_in_it() -> None:
    engine = EchoEngine(EngineConfig(kind="echo"))
    told: list[list[str]] = []
    engine.note_steps(lambda ids: told.append(list(ids)))
    engine.add(make_add("a"))
    engine.step()
    engine.add(make_add("b"))
    engine.step()
    assert [sorted(ids) for ids in told] == [["a"], [], ["a", "b"], []]  # nobody once it has ended


def test_an_engine_tells_after_each_step_who_had_no_place_in_it() -> None:
    engine = EchoEngine(EngineConfig(kind="echo", max_sequences=1))
    engine.add(make_add("a"))
    engine.add(make_add("b"))
    assert engine.step().waiting == ["b"]
    engine.abort(["a"])
    assert engine.step().waiting == []

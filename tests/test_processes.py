"""Tests that run in several processes are all run, once, with their files together."""

import os
from pathlib import Path

import pytest

from tests import processes

pytest_plugins = ["pytester"]

CONFTEST = """
import atexit, os, pathlib, pytest
from tests import processes

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    processes.run(session, 2)
    return True

@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    atexit.register(lambda: pathlib.Path(f"at-exit-{os.getpid()}").touch())
    yield base
    pathlib.Path(f"torn-down-{os.getpid()}").touch()
"""
NOTED = """
import os, pathlib, time

def note(name, base):
    with open("notes", "a") as notes:
        notes.write(f"{name} {os.getpid()} {base}\\n")

def wait_for(name):
    ends_at = time.monotonic() + 60
    while name not in pathlib.Path("notes").read_text() and time.monotonic() < ends_at:
        time.sleep(0.01)
"""
FILE = """
from noted import note
import time

def test_a(shared):
    note("NAME", shared)
    time.sleep(0.3)

def test_b(shared):
    note("NAME", shared)
    print("said by NAME")
    assert "NAME" != "two"
"""
DYING = """
import os

def test_a(): pass
def test_b(): os._exit(7)
def test_c(): pass
def test_d(): pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makeconftest(CONFTEST)
    return pytester


def test_every_test_is_run_once_with_those_of_its_file(run: pytest.Pytester) -> None:
    names = ("one", "two", "three", "four", "five")
    run.makepyfile(noted=NOTED, **{f"test_{name}": FILE.replace("NAME", name) for name in names})
    result = run.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=9, failed=1)
    said = result.stdout.str()
    assert "said by two" in said
    assert "said by one" not in said
    notes = [line.split() for line in (run.path / "notes").read_text().splitlines()]
    assert sorted(name for name, _, _ in notes) == sorted(names * 2)
    by_name = {name: {pid for of, pid, _ in notes if of == name} for name in names}
    assert all(len(pids) == 1 for pids in by_name.values())
    pids = set.union(*by_name.values())
    assert len(pids) == 2
    assert len({base for _, _, base in notes}) == 2, "each has a folder of its own"
    for pid in pids:
        assert (run.path / f"torn-down-{pid}").exists()
        assert (run.path / f"at-exit-{pid}").exists()


def test_the_last_process_takes_files_from_the_end(run: pytest.Pytester) -> None:
    """A process asks for its next file before the last test of its present one, so each file has two tests."""
    head = "from noted import note, wait_for\n\ndef test_a(shared):\n    note('{}', shared)\n"
    tail = "\ndef test_b(): pass"
    run.makepyfile(
        noted=NOTED,
        test_1=head.format("test_1") + "    wait_for('test_2')\n" + tail,
        test_2=head.format("test_2") + tail,
        test_3=head.format("test_3") + tail,
    )
    run.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=6)
    notes = [line.split() for line in (run.path / "notes").read_text().splitlines()]
    pids = {name: pid for name, pid, _ in notes}
    assert [name for name, pid, _ in notes if pid == pids["test_3"]] == ["test_3", "test_2"]


def test_a_process_that_dies_fails_its_test_and_the_rest_is_run(run: pytest.Pytester) -> None:
    run.makepyfile(test_dying=DYING, test_well="def test_a(): pass")
    result = run.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(["*has ended with 7*", "FAILED test_dying.py::test_b*"])


def test_a_run_that_is_to_end_at_its_first_failure_does(run: pytest.Pytester) -> None:
    run.makepyfile(test_dying="def test_a(): assert False\ndef test_b(): assert False", test_well="def test_a(): pass")
    result = run.runpytest_subprocess("-p", "no:cacheprovider", "-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["failed"] == 1


def test_a_run_within_a_test_is_one_process() -> None:
    environ = {"TEST_PROCESSES": "3", "OTHER": "1"}
    assert processes.asked(environ) == 3
    processes.forget(environ)
    assert environ == {"OTHER": "1"}
    assert processes.asked(environ) == 0
    assert "TEST_PROCESSES" not in os.environ

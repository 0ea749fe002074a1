"""Runs the tests in several processes, which are forked from the one that has imported and collected them all.

``TEST_PROCESSES=3`` asks for it. Processes that each began by themselves would each import and collect every test:
half a minute of processor time on a fresh clone. A file's tests stay together, and who comes to the last test of a
file is given another one. The last process takes files from the end of the order, the others from the front: long
files stand in front and mostly wait, for leases, browsers and streams, so that running only those would leave cores
idle. A process that dies fails the test that it ran, and another one goes on behind it. A fork shares nothing with its
siblings but the sources that were imported, so nothing may be started while tests are collected.
"""

import atexit
import itertools
import os
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

import pytest

from tests.services import keeper
from tests.services.process import give_ports

_ASKED = "TEST_PROCESSES"


def asked(environ: Mapping[str, str]) -> int:
    """How many processes a run is to have; 0 for this one alone."""
    return int(environ.get(_ASKED) or 0)


def forget(environ: dict[str, str] | os._Environ[str]) -> None:
    """A run that a test starts is one process."""
    environ.pop(_ASKED, None)


def by_file(items: Sequence[pytest.Item]) -> list[list[int]]:
    """The numbers of the tests of each file, which stand together."""
    of_files = itertools.groupby(range(len(items)), lambda number: items[number].nodeid.partition("::")[0])
    return [list(numbers) for _, numbers in of_files]


def run(session: pytest.Session, num_processes: int) -> None:
    """Runs the session's tests; their reports arrive as if this process had run them."""
    _Parent(session).run(num_processes)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


@dataclass(slots=True)
class _Child:
    """A process as its parent sees it."""

    pid: int
    given: list[int]
    """Tests that it has not begun."""
    from_end: bool
    """Whether it takes files from the end."""
    running: int | None = None
    has_ended: bool = False


@dataclass(slots=True)
class _Parent:
    """Gives out files and hears what became of their tests."""

    session: pytest.Session
    files: deque[list[int]] = field(init=False)
    children: dict[Connection, _Child] = field(default_factory=dict)
    num_forked: int = 0

    def __post_init__(self) -> None:
        self.files = deque(by_file(self.session.items))

    def run(self, num_processes: int) -> None:
        try:
            num_processes = min(num_processes, len(self.files))
            for number in range(num_processes):
                from_end = 0 < number == num_processes - 1
                self._fork(self._take(from_end), from_end)
            while self.children and not (self.session.shouldfail or self.session.shouldstop):
                for line in wait(list(self.children)):
                    assert isinstance(line, Connection)
                    self._hear(line)
        finally:
            self._close()

    def _take(self, from_end: bool) -> list[int]:
        """The tests of one more file; none if all are given out."""
        if not self.files:
            return []
        return self.files.pop() if from_end else self.files.popleft()

    def _fork(self, given: list[int], from_end: bool) -> None:
        self.session.config.get_terminal_writer().flush()
        ours, theirs = Pipe()
        base = self.session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        pid = os.fork()
        if pid == 0:
            for line in (ours, *self.children):
                line.close()
            give_ports(1 + self.num_forked)  # 0 is the keeper's
            _live(_Worker(self.session, theirs, given), base / f"process-{self.num_forked}")
        theirs.close()
        self.num_forked += 1
        self.children[ours] = _Child(pid, list(given), from_end)

    def _hear(self, line: Connection) -> None:
        child = self.children[line]
        try:
            kind, said = line.recv()
        except (EOFError, OSError):
            self._bury(line)
            return
        if kind == "next":
            following = self._take(child.from_end)
            child.given += following
            with suppress(OSError):  # it has died meanwhile, which the next turn hears
                line.send(following)
        elif kind == "begins":
            child.given.remove(said)
            child.running = said
        elif kind == "report":
            self._report(said)
        elif kind == "warning":
            self.session.config.hook.pytest_warning_recorded.call_historic(kwargs=said)
        else:
            child.has_ended = True

    def _report(self, said: dict[str, Any]) -> None:
        hook = self.session.config.hook
        hook.pytest_runtest_logreport(
            report=hook.pytest_report_from_serializable(config=self.session.config, data=said)
        )

    def _bury(self, line: Connection) -> None:
        """A process has gone. If it should not have, its test has failed, and another takes its place."""
        child = self.children.pop(line)
        line.close()
        code = os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])
        if child.has_ended:
            return
        if child.running is None:
            raise RuntimeError(f"A process of tests has ended with {code} before it ran any.")
        item = self.session.items[child.running]
        why = f"The process that ran this test has ended with {code}."
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        self.session.config.hook.pytest_runtest_logreport(report=report)
        if child.given:
            self._fork(child.given, child.from_end)

    def _close(self) -> None:
        """Whoever still runs ends at its next word, which nobody hears."""
        for line, child in self.children.items():
            line.close()
            with suppress(ChildProcessError):
                os.waitpid(child.pid, 0)


@dataclass(slots=True, eq=False)
class _Worker:
    """What a forked process does."""

    session: pytest.Session
    line: Connection
    given: list[int]

    def run(self) -> None:
        """Runs tests until none are left. The next one is known before each, as its fixtures may be kept for it."""
        items = self.session.items
        while self.given:
            number, *self.given = self.given
            if not self.given:
                self.line.send(("next", None))
                self.given = self.line.recv()
            following = items[self.given[0]] if self.given else None
            self.line.send(("begins", number))
            items[number].config.hook.pytest_runtest_protocol(item=items[number], nextitem=following)
        self.line.send(("ended", None))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        config = self.session.config
        self.line.send(("report", config.hook.pytest_report_to_serializable(config=config, report=report)))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        told = warnings.WarningMessage(
            str(warning_message.message),
            warning_message.category,
            warning_message.filename,
            warning_message.lineno,
        )
        said = {"warning_message": told, "when": when, "nodeid": nodeid, "location": location}
        self.line.send(("warning", said))


class _Quiet:
    """Stands for the reporter where nothing is printed but what a plugin writes by itself."""

    def __init__(self, config: pytest.Config) -> None:
        self._tw = config.get_terminal_writer()


def _live(worker: _Worker, folder: os.PathLike[str]) -> NoReturn:
    """The whole life of a forked process."""
    code = 1
    try:
        _settle(worker.session.config, folder)
        worker.session.config.pluginmanager.register(worker)
        worker.run()
        code = 0
    except (KeyboardInterrupt, EOFError, BrokenPipeError):  # the run has been ended
        with suppress(BaseException):
            worker.session._setupstate.teardown_exact(None)
    except BaseException:  # the parent says so of the test that ran
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            atexit._run_exitfuncs()
            sys.stdout.flush()
        os._exit(code)


def _settle(config: pytest.Config, folder: os.PathLike[str]) -> None:
    """Makes this process its own: a folder, files for what tests print, nothing that the parent is to tidy up."""
    keeper.leave_to_the_parent()
    os.mkdir(folder, 0o700)
    config._tmp_path_factory._basetemp = type(config._tmp_path_factory._basetemp)(folder)  # type: ignore[attr-defined]
    plugins = config.pluginmanager
    quiet = _Quiet(config)
    plugins.unregister(name="terminalreporter")
    plugins.register(quiet, "terminalreporter")
    capture = plugins.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()

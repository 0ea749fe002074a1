"""``axon`` in a process of its own, forked from one that has imported it already: for tests that start many.

    process = start(["serve"], environ=environ, folder=folder, stdout=log, stderr=log)
    done = run(["keys", "create"], environ=environ, folder=folder)

Only a run of the tests forks (``enable``). What a person starts or measures is started the cold way, as
``python -m axon``; so is all of a run with ``COLD_STARTS=1``, and a process whose interpreter has to be another: with
other ``PYTHON…`` or locale variables than this one has. What a test says about the start itself (which modules are
imported, what ``/proc`` shows of the command line and the environment) it must say of a cold one.
"""

import array
import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCE = REPOSITORY / "src"
_OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG")
_START_S = 60.0
_enabled = False
_environ: dict[str, str] = {}
"""What a zygote begins with: that of the run, whatever the test has set that is the first to need one."""


class Process(Protocol):
    """What tests need of ``subprocess.Popen``."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int) -> None: ...
    def kill(self) -> None: ...


def enable() -> None:
    """From here on this process forks, unless ``COLD_STARTS=1``."""
    global _enabled
    _enabled = os.environ.get("COLD_STARTS") != "1"
    _environ.update(os.environ)


def enabled() -> bool:
    """Whether this process forks."""
    return _enabled


def start(
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str],
    folder: Path,
    stdout: IO[bytes] | IO[str] | int,
    stderr: IO[bytes] | IO[str] | int,
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    new_session: bool = False,
    cold: bool = False,
) -> Process:
    """Starts ``axon`` with these arguments."""
    if cold or not _enabled or _interpreter(environ) != _interpreter(os.environ):
        command = [sys.executable, "-m", "axon", *arguments]
        streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
        return subprocess.Popen(command, env=environ, cwd=folder, start_new_session=new_session, **streams)  # type: ignore[call-overload,no-any-return]
    with open(os.devnull, "r+b") as nothing:
        ends = [nothing if each == subprocess.DEVNULL else each for each in (stdin, stdout, stderr)]
        fds = [end if isinstance(end, int) else end.fileno() for end in ends]
        ask = {"arguments": list(arguments), "environ": dict(environ), "folder": str(folder)}
        return _zygote().fork({**ask, "new_session": new_session}, fds)


def run(
    arguments: Sequence[str],
    *,
    environ: Mapping[str, str],
    folder: Path,
    said: str = "",
    timeout_s: float = 60.0,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs a command of ``axon`` to its end; ``said`` is what it reads."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(said.encode())
        stdin.seek(0)
        process = start(arguments, environ=environ, folder=folder, stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        stdout.seek(0)
        stderr.seek(0)
        done = subprocess.CompletedProcess(list(arguments), code, stdout.read().decode(), stderr.read().decode())
    if check:
        done.check_returncode()
    return done


def _interpreter(environ: Mapping[str, str]) -> dict[str, str]:
    """What Python itself reads of the environment, but for the path, where all that counts is where Axon is from."""
    return {
        name: value for name, value in environ.items() if name.startswith(_OF_THE_INTERPRETER) and name != "PYTHONPATH"
    }


class Forked:
    """A fork of the zygote, which is the one that hears how it ended and says so."""

    def __init__(self, report: int) -> None:
        self._report, self._unread = report, b""
        self._reading = threading.Lock()
        self.returncode: int | None = None
        self.cpu_s = 0.0
        """What it and those that it has waited for have used, known when it has ended."""
        pid = self._line(_START_S)
        assert pid is not None, f"no process was forked within {_START_S:g} s"
        self.pid = int(pid)

    def poll(self) -> int | None:
        if self._reading.acquire(blocking=False):  # else another thread waits for it: it has not ended
            try:
                self._hear(0.0)
            finally:
                self._reading.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        with self._reading:
            self._hear(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("axon", timeout or 0.0)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _hear(self, timeout_s: float | None) -> None:
        if self.returncode is None and (end := self._line(timeout_s)) is not None:
            status, cpu_s = end.split()
            self.returncode, self.cpu_s = os.waitstatus_to_exitcode(int(status)), float(cpu_s)
            os.close(self._report)

    def _line(self, timeout_s: float | None) -> str | None:
        """The next that the zygote says; None when it has not said it in time."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with selectors.DefaultSelector() as reading:
            reading.register(self._report, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not reading.select(left):
                    return None
                data = os.read(self._report, 64)
                assert data, "the zygote has gone"
                self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()


class Zygote:
    """The process that forks, as its caller sees it. It ends with its caller."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for each in (self._control, theirs):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.services.zygote", "--fd", str(theirs.fileno())],
                env={**(_environ or os.environ), "PYTHONPATH": str(SOURCE)},
                cwd=REPOSITORY,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

        atexit.register(self._close, os.getpid())

    def _close(self, owner: int) -> None:
        """At the end of the process that made it, not of one that was forked from that."""
        if os.getpid() == owner:
            self._control.close()
            self._process.wait(_START_S)

    def fork(self, ask: Mapping[str, object], streams: Sequence[int]) -> Forked:
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            rights = array.array("i", [*streams, theirs])
            self._control.sendmsg([json.dumps(ask).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        finally:
            os.close(theirs)
        return Forked(ours)


_zygotes: dict[int, Zygote] = {}
"""By the process that started it."""
_of_the_run: Zygote | None = None
_lock = threading.Lock()


def share() -> None:
    """Starts one zygote for this process and all that are forked from it."""
    global _of_the_run
    _of_the_run = Zygote() if _enabled else None


def _zygote() -> Zygote:
    if _of_the_run is not None:
        return _of_the_run
    me = os.getpid()
    with _lock:
        if me not in _zygotes:
            _zygotes[me] = Zygote()
        return _zygotes[me]

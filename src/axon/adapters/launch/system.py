"""Processes of this machine by pid and start time, so that a pid that was given again is not taken for the old one.

Knows no replica. Reads ``/proc``, so it needs Linux.
"""

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
_START, _STATE = 19, 0
"""Places of the start time (in clock ticks since boot) and the state among the fields behind the command's name."""
_DEAD = ("Z", "X")
"""States of a process that has ended: a zombie waits for its parent to look at it."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One run of a program on this machine."""

    pid: int
    started: int
    """Clock ticks since boot."""
    boot: str
    """Id of the machine's boot."""

    def __str__(self) -> str:
        return f"{self.pid}-{self.started}-{self.boot[:8]}"


def process_id(pid: int) -> ProcessId | None:
    """The process that has this pid now; None if it has ended."""
    fields = _fields(pid)
    if fields is None or fields[_STATE] in _DEAD:
        return None
    return ProcessId(pid=pid, started=int(fields[_START]), boot=boot_id())


def spawn(command: Sequence[str], environ: Mapping[str, str], log: Path) -> ProcessId:
    """Starts a process in a session of its own, so that a ctrl-c at this one's terminal is not meant for it, and with
    no input; it appends what it prints to ``log``. It outlives this process. Raises ``OSError``."""
    pid = os.posix_spawn(
        command[0],
        list(command),
        environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGPIPE],
    )
    fields = _fields(pid)
    assert fields is not None, "a child that has ended stays until it is reaped"
    return ProcessId(pid=pid, started=int(fields[_START]), boot=boot_id())


def reaped(process: ProcessId) -> int | None:
    """The exit code of a process that has ended, if it is a child of this one; it would stay as a zombie. None for one
    that runs or is somebody else's; minus a signal's number for one that a signal has ended."""
    try:
        pid, status = os.waitpid(process.pid, os.WNOHANG)
    except ChildProcessError:
        return None
    return os.waitstatus_to_exitcode(status) if pid else None


def is_alive(process: ProcessId) -> bool:
    return process_id(process.pid) == process


def send(process: ProcessId, number: signal.Signals) -> bool:
    """Sends a signal to the process and to no other that has its pid by now; False if it has ended."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return _send_by_pid(process, number)
    try:
        if not is_alive(process):  # the descriptor holds the pid's present process, whoever gets the pid next
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def _send_by_pid(process: ProcessId, number: signal.Signals) -> bool:
    """For kernels without pidfd: between the check and the signal, another process could get the pid."""
    if not is_alive(process):
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True


@cache
def boot_id() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _fields(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()  # the command's name may have spaces and brackets

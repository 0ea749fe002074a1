"""The program of a process that does tasks for another one (``runtime.task_process``). Knows no task.

The process has nothing that a task could misuse: one socket, no streams, no handlers of signals, and bounds of memory
and processor time. It ends when its owner has gone.
"""

import contextlib
import os
import resource
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from axon.runtime.framing import Framer, framed

_READY = framed(b"")
"""The process's first frame, an empty one: it has imported what it needs."""
_READ_BYTES = 1 << 16
_SOCKET = 3
"""Descriptor of the socket, the first one behind the streams."""


def close_inherited(descriptor: int) -> int:
    """Closes every descriptor but the streams and this socket, which is moved; returns its new descriptor. A program
    calls it first: an event loop may leave duplicates of its streams to its children, the server's log among them."""
    if descriptor != _SOCKET:
        os.dup2(descriptor, _SOCKET)
    os.closerange(_SOCKET + 1, os.sysconf("SC_OPEN_MAX"))
    return _SOCKET


def run(
    descriptor: int, work: Callable[[bytes], bytes], *, name: str, max_cpu_s: float, limits: Mapping[int, int]
) -> None:
    """Answers tasks from the socket until its other end is closed. An answer is not empty.

    ``name`` is what ``top`` and ``ps -o comm`` show. A task that takes more than ``max_cpu_s`` seconds of processor
    time ends the process by SIGPROF, whatever it holds or computes; one that raises anything ends it with exit code 1.
    ``limits`` are resource limits by their numbers.
    """
    connected = socket.socket(fileno=descriptor)
    with contextlib.suppress(OSError):  # only Linux has it
        Path("/proc/self/comm").write_text(name)
    for limit, value in {resource.RLIMIT_CORE: 0, **limits}.items():  # a core would fill the disk, with clients' text
        _bound(limit, value)
    _leave_signals()
    _leave_streams()
    with contextlib.suppress(ConnectionError):  # the owner has gone
        _serve(connected, work, max_cpu_s)


def _serve(connected: socket.socket, work: Callable[[bytes], bytes], max_cpu_s: float) -> None:
    framer = Framer()
    connected.sendall(_READY)
    while data := connected.recv(_READ_BYTES):
        for body in framer.feed(data):
            signal.setitimer(signal.ITIMER_PROF, max_cpu_s)
            try:
                answer = work(body)
            except BaseException:  # its words may be a client's
                os._exit(1)  # before the socket is closed: the owner would kill it then, and not learn why it ended
            signal.setitimer(signal.ITIMER_PROF, 0)
            connected.sendall(framed(answer))


def _bound(limit: int, value: int) -> None:
    """Sets a limit of this process, which cannot be raised again."""
    _, hard = resource.getrlimit(limit)
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (most, most))


def _leave_signals() -> None:
    """Ignores signals to the owner's group: the process ends with its socket, or by a task's timer."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _leave_streams() -> None:
    """Replaces the owner's streams by /dev/null: what native code writes as it dies may have a client's text."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)

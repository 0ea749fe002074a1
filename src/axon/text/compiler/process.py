"""The process that compiles a gateway's grammars: ``python -m axon.text.compiler.process FD CPU_S``.

A grammar that makes the compiler overflow its stack, compute for ever or take all memory ends this process and nothing
else. ``FD`` is a socket, ``CPU_S`` the whole seconds of processor time for one task, after which the system ends the
process (SIGXCPU). It computes one task after the other, and ends when its gateway has gone.
"""

import contextlib
import math
import os
import resource
import socket
import sys
from pathlib import Path

from axon.runtime.framing import Framer
from axon.text.compiler.messages import READY, decode_task, encode
from axon.text.compiler.work import compiled
from axon.text.grammar_check import GrammarCheck

NAME = "axon-compiler"
"""The process's name, as ``top`` and ``ps -o comm`` show it."""
_MAX_DATA_BYTES = 1 << 30
"""Memory that the process may allocate; with more, the compiler aborts."""
_READ_BYTES = 1 << 16


def serve(connected: socket.socket, max_cpu_s: int) -> None:
    """Answers tasks until the other end is closed."""
    check, framer = GrammarCheck(), Framer()
    connected.sendall(READY)
    while data := connected.recv(_READ_BYTES):
        for body in framer.feed(data):
            _bound(resource.RLIMIT_CPU, math.ceil(_cpu_s()) + max_cpu_s)
            connected.sendall(encode(compiled(decode_task(body), check)))


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _bound(limit: int, value: int) -> None:
    """Sets a soft limit of this process, within the hard one."""
    _, hard = resource.getrlimit(limit)
    resource.setrlimit(limit, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def main() -> None:
    descriptor, max_cpu_s = map(int, sys.argv[1:])
    connected = socket.socket(fileno=descriptor)
    with contextlib.suppress(OSError):  # only Linux has it
        Path("/proc/self/comm").write_text(NAME)
    _bound(resource.RLIMIT_CORE, 0)  # a schema that ends the process must not fill the disk
    _bound(resource.RLIMIT_DATA, _MAX_DATA_BYTES)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the compiler's last words may have a client's text
    with contextlib.suppress(ConnectionError):  # the gateway has gone
        serve(connected, max_cpu_s)


if __name__ == "__main__":
    main()

"""Ends what a test run has started when the run itself was killed: nobody else would.

A process beside the run reads from a pipe which processes there are. The pipe ends with the run, however that ends, and
what is then still there of them is killed. After a run that ended well nothing is.
"""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

_reapers: dict[int, subprocess.Popen[bytes]] = {}
"""By the process that started it: a forked one has a pipe of its own."""
_lock = threading.Lock()
"""Servers are started by several threads; a second reaper, forgotten, would end what it was told of."""


def adopt(pid: int) -> None:
    """The process, and its group where it leads one, is to end with this one."""
    with _lock:
        pipe = _reaper().stdin
        assert pipe is not None
        pipe.write(f"{pid} {_born(pid)}\n".encode())
        pipe.flush()


def _reaper() -> subprocess.Popen[bytes]:
    me = os.getpid()
    if me not in _reapers:
        command = [sys.executable, str(Path(__file__).resolve())]
        _reapers[me] = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    return _reapers[me]


def _born(pid: int) -> str:
    """When the process started, in ticks; empty when there is none: a number is given to another one later."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    return ""


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)


def main() -> None:
    adopted = [line.split() for line in sys.stdin]
    for pid, *born in adopted:
        if born == [_born(int(pid))]:
            _kill(int(pid))


if __name__ == "__main__":
    main()

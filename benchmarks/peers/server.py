"""A server in a process group of its own, owned by the block that opened it. Knows no engine."""

import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

START_S = 300.0
_STOP_S = 10.0
_TICKS = os.sysconf("SC_CLK_TCK")


class NotServing(Exception):
    """The server did not come up."""


class Server:
    """Started, paused while another is measured, and ended with everything it has started itself."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        port: int,
        log_path: Path,
        metrics_port: int = 0,
    ) -> None:
        self._command = list(command)
        self._environment = dict(environment)
        self._log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None
        self.port = port
        self.metrics_port = metrics_port

    def start(self) -> None:
        """Returns at once; ``wait`` waits until it serves."""
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, timeout_s: float = START_S) -> None:
        """Until it answers; raises NotServing with the last lines of its log."""
        deadline = time.monotonic() + timeout_s
        while not self._answers():
            assert self._process is not None
            if (code := self._process.poll()) is not None:
                raise NotServing(f"ended with {code}:\n{self._last_words()}")
            if time.monotonic() > deadline:
                raise NotServing(f"not within {timeout_s:g} s:\n{self._last_words()}")
            time.sleep(0.1)

    def pause(self) -> None:
        """Stops the clock for it: an idle server must not take time from the one that is measured."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """After ``pause``."""
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends the whole group; a second call does nothing."""
        if self._process is None:
            return
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        try:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_S)
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def exit_code(self, wait_s: float) -> int | None:
        """Of a process that ends within this time; None of one that runs on. Negative: the signal that ended it."""
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(wait_s)
        return None

    def cpu_s(self) -> float:
        """CPU time of the process and of all that descend from it and live now, in whatever group."""
        stats = dict(_stats())
        family = {self.pid}
        while more := {pid for pid, stat in stats.items() if int(stat[1]) in family} - family:
            family |= more
        return sum(_cpu_s(stats[pid]) for pid in family if pid in stats)

    def own_cpu_s(self) -> float:
        """CPU time of its first process alone."""
        return cpu_s(self.pid)

    @property
    def pid(self) -> int:
        """Of the process, which is its group's too."""
        assert self._process is not None
        return self._process.pid

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    def _last_words(self) -> str:
        return "\n".join(self._log_path.read_text(errors="replace").splitlines()[-15:])


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """The server for the length of a block, however the block ends."""
    try:
        server.start()
        yield server
    finally:
        server.stop()


def _stats() -> Iterator[tuple[int, list[str]]]:
    """Of every process: its id, and what its stat says behind the name: state, parent, group, …"""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            yield int(path.parent.name), path.read_text().rpartition(")")[2].split()


def cpu_s(pid: int) -> float:
    """CPU time of one process."""
    return _cpu_s(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split())


def _cpu_s(fields: Sequence[str]) -> float:
    return (int(fields[11]) + int(fields[12])) / _TICKS

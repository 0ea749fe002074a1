"""A real server in a process of its own, on a private port and folder: started, killed, started again, removed."""

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.services.reaper import adopt

PORT_SHARE = "TEST_PORTS"
"""Names the share of the ports that is for this process and for what it starts."""
_NUM_SHARES = 8
_PORTS = range(10_240, 32_768)
_had_ports: set[int] = set()


def give_ports(number: int) -> None:
    """Gives this process a share of the ports. A server takes its port seconds after the port was chosen, so processes
    of tests that run side by side must not choose out of the same ones."""
    os.environ[PORT_SHARE] = str(number % _NUM_SHARES)


def free_port() -> int:
    """A loopback port that was free a moment ago, of those that no system gives to connections of its own accord. This
    process has not had it before, unless it has had half of its ports."""
    share = os.environ.get(PORT_SHARE)
    ports = _PORTS[int(share) :: _NUM_SHARES] if share else _PORTS
    if 2 * len(_had_ports) > len(ports):
        _had_ports.clear()
    while True:
        port = random.SystemRandom().choice(ports)
        if port in _had_ports:
            continue
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            _had_ports.add(port)
            return port


def listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(true: Callable[[], object], what: str, timeout_s: float = 60.0) -> None:
    """Waits for the thing itself; raises when it does not come."""
    deadline = time.monotonic() + timeout_s
    for pause_s in pauses():
        if true():
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        time.sleep(pause_s)


def pauses() -> Iterator[float]:
    """How long to wait before each next look at something: a look at a server's metrics takes 20 ms of processor time,
    so what has not come at once is looked at more and more seldom, a twelfth of a second apart in the end."""
    pause_s = 0.01
    while True:
        yield pause_s
        pause_s = min(0.08, pause_s * 1.25)


def private_folder(path: Path) -> Path:
    """A folder that the unprivileged user a server runs as can write, down from the root of the temporary folder."""
    path.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        shutil.chown(path, "nobody", "nogroup")
        for parent in path.parents:
            if parent.stat().st_uid == 0 and parent.stat().st_mode & 0o005 != 0o005:
                parent.chmod(parent.stat().st_mode | 0o011)
    return path


def unprivileged(command: Sequence[str]) -> list[str]:
    """Servers refuse to run as root: as root, the command for an ordinary user."""
    if os.geteuid() != 0:
        return list(command)
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]


class ServerProcess:
    """One server; ``kill`` and ``start`` again as often as a test needs."""

    def __init__(
        self, command: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None, *, as_owner: bool = False
    ) -> None:
        """``as_owner``: it runs as whoever runs the tests, whose cache folder has its program."""
        self.folder = folder
        self._command = list(command) if as_owner else unprivileged(command)
        self._environ = {**os.environ, "HOME": str(folder), **(environ or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Of a copy for another process, which can use the server but not end it."""
        return {**self.__dict__, "_process": None}

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def output(self) -> str:
        return (self.folder / "output.log").read_text(errors="replace")

    def start(self, ready: Callable[[], object], timeout_s: float = 60.0) -> None:
        """Starts the process and waits until it answers."""
        with (self.folder / "output.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environ, cwd=self.folder, stdout=log, stderr=log, start_new_session=True
            )
        adopt(self._process.pid)

        def up() -> bool:
            if not self.alive:
                raise RuntimeError(f"{self._command[-1]} ended at once:\n{self.output[-2000:]}")
            return bool(ready())

        wait_for(up, f"{self._command} answers", timeout_s)

    def kill(self) -> None:
        """The whole process group, at once, and waits until it is gone."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Asks it to end; kills it when it does not."""
        try:
            self._signal(signal.SIGTERM, timeout_s=30.0)
        except subprocess.TimeoutExpired:
            self.kill()

    def send(self, number: int) -> None:
        """Sends the first process a signal, and waits for nothing."""
        os.kill(self.pid, number)

    def pause(self) -> None:
        """Returns when all of it stands still: a thread that still runs could answer one more call."""
        os.killpg(self.pid, signal.SIGSTOP)
        wait_for(lambda: _states(self.pid) <= {"T", "Z"}, "the process group stands still")

    def resume(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)

    def _signal(self, number: int, timeout_s: float = 60.0) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        os.killpg(self._process.pid, number)
        self._process.wait(timeout_s)


def _states(group: int) -> set[str]:
    """The states of every thread of a process group."""
    states = set()
    for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        try:
            state, _, of_group = stat.read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:
            continue  # it has just ended
        if int(of_group) == group:
            states.add(state)
    return states

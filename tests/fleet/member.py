"""One process of a fleet: ``axon gateway``, ``worker`` or ``control``, to be started, stopped, killed and paused."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import httpx

from tests.journeys.server import REPOSITORY, START_S, engines_under, metric_of, wait_until
from tests.services import warm
from tests.services.process import free_port
from tests.services.reaper import adopt

Role = Literal["gateway", "worker", "control"]


class Member:
    """Settings are by their names with ``_`` for ``.``: ``engine_kind="echo"``, ``failpoints="…=kill"``."""

    def __init__(self, role: Role, name: str, folder: Path, settings: Mapping[str, object]) -> None:
        self.role, self.name = role, name
        self.command: str = role
        self.log_path = folder / f"{name}.log"
        self.port = free_port() if role == "gateway" else 0
        self.metrics_port = free_port()
        own: dict[str, object] = {f"{role}_metrics_port": self.metrics_port}
        if role == "gateway":
            own |= {"gateway_port": self.port, "gateway_proxies": 1, "gateway_processes": 1}
        own |= {"worker_name": name} if role == "worker" else {}
        self.settings: dict[str, object] = {**own, **settings}
        self._folder = folder
        self._process: warm.Process | None = None
        self._paused: list[int] = []

    @property
    def url(self) -> str:
        """Of a gateway's API."""
        assert self.role == "gateway"
        return f"http://127.0.0.1:{self.port}"

    @property
    def probe_url(self) -> str:
        """Of its metrics and probes."""
        return f"http://127.0.0.1:{self.metrics_port}"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """None while it runs, and before; the negative number of a signal that ended it."""
        return self._process.poll() if self._process else None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has written in all its lives."""
        return self.log_path.read_text(errors="replace")

    def start(self, *, wait: bool = True, **settings: object) -> "Member":
        """Starts it, again if it has ended; new settings stay for later starts. Waits until it is ready."""
        assert not self.alive
        self.settings |= settings
        with self.log_path.open("ab") as log:
            self._process = warm.start(
                [self.command],
                environ=self.environment(),
                folder=self._folder,
                stdout=log,
                stderr=log,
                new_session=True,  # a ctrl-c is for whoever runs the fleet
            )
        adopt(self._process.pid)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, timeout_s: float = START_S) -> None:
        def ready() -> bool:
            assert self.alive, f"{self.name} ended:\n{self.log[-3000:]}"
            return self.probe("/readyz") == 200

        wait_until(ready, f"{self.name} is ready", timeout_s)

    def probe(self, path: str) -> int:
        """What it answers to a probe; 0 when it does not."""
        try:
            return httpx.get(self.probe_url + path, timeout=20).status_code
        except httpx.TransportError:
            return 0

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        return metric_of(f"{self.probe_url}/metrics", name)

    def send(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 60.0) -> int:
        """Sends the signal, waits, and returns the exit code; one that has ended says how."""
        self.resume()
        if self.alive:
            self.send(number)
        return self.wait(timeout_s)

    def wait(self, timeout_s: float = 60.0) -> int:
        """For its end; the exit code. One that was told and does not end is killed, and the test hears of it."""
        if self._process is None:
            return 0
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def kill(self) -> None:
        """At once and with its engine, as a lost machine."""
        self.resume()
        engines = self.engine_pids() if self.alive else []
        self.stop(signal.SIGKILL)
        for pid in engines:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def restart(self, **settings: Any) -> int:
        """As a rolling upgrade does it: SIGTERM, wait, start; returns the exit code."""
        code = self.stop()
        self.start(**settings)
        return code

    def pause(self) -> None:
        """It and its engine stop where they stand; returns when they have."""
        self._paused = [self.pid, *self.engine_pids()]
        for pid in self._paused:
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: all(_state(pid) == "T" for pid in self._paused), "the processes are stopped")

    def resume(self) -> None:
        paused, self._paused = self._paused, []
        for pid in paused:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def engine_pids(self) -> list[int]:
        return engines_under(self.pid)

    def environment(self) -> dict[str, str]:
        """Of its process, or of a command that is to meet the same services."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AXON_")}
        own = {f"AXON_{name.upper()}": str(value) for name, value in self.settings.items()}
        return {**clean, "PYTHONPATH": str(REPOSITORY / "src"), **own}


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "X"

"""The processes of one place, by what they do; each can be started, killed and paused. Knows no fault and no client.

Today every process is an ``axon serve``, which does all there is to do; whoever breaks one names what it breaks: a
gateway, a worker, control.
"""

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from tests.faults import model
from tests.faults.place import Place
from tests.journeys.server import Server
from tests.services.process import wait_for

PEPPER = "0123456789abcdef0123456789abcdef"


class Process(Server):
    """A server that can be paused, whole or its engine alone, and that a fault may leave in any state."""

    def __init__(self, place: Place, name: str, settings: Mapping[str, object], step_s: float) -> None:
        super().__init__(place.folder / name, **settings)
        self.incarnation = ""
        """Its worker's, as the lease says it."""
        self._place, self._step_s = place, step_s
        self._paused: list[int] = []

    @property
    def environment(self) -> dict[str, str]:
        ours, extra = super().environment, model.environment(self._step_s)
        return {**ours, **extra, "PYTHONPATH": os.pathsep.join([extra["PYTHONPATH"], ours["PYTHONPATH"]])}

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll() if self._process else None

    @property
    def alive(self) -> bool:
        return self._process is not None and self.exit_code is None

    @property
    def num_fds(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def pids(self) -> dict[str, int]:
        """Its own and its engine's."""
        return {"server": self.pid} | dict(zip(["engine"], self.engine_pids(), strict=False))

    def start(self) -> "Process":
        """Up, ready, and its worker known by name."""
        known = self._place.incarnations
        super().start()
        if not self._place.urls:
            return self
        wait_for(lambda: self._place.leases() - known, "its worker holds a lease")
        [self.incarnation] = self._place.leases() - known
        known.add(self.incarnation)
        return self

    def make_key(self, tenant: str) -> str:
        """A key of a tenant, made as a person makes one."""
        command = [sys.executable, "-m", "axon", "keys", "create", "--tenant", tenant]
        made = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True, timeout=60.0)
        return made.stdout.strip()

    def arm(self, failpoints: str) -> None:
        """From its next start on; an empty text disarms it."""
        self._settings["failpoints"] = failpoints

    def kill(self) -> None:
        """As a power cut, however it stands; returns when its engine has gone with it."""
        engines = self.engine_pids()
        self.stop(signal.SIGKILL)
        self.resume()
        wait_for(lambda: all(state_of(pid) in "XZ" for pid in engines), "the engine goes with its worker")

    def pause(self) -> None:
        """It and its engine stop where they stand; returns when they have."""
        self._pause([self.pid, *self.engine_pids()])

    def pause_engine(self) -> None:
        """Its streams stand still while everything around them goes on."""
        self._pause(self.engine_pids())

    def resume(self) -> None:
        paused, self._paused = self._paused, []
        for pid in paused:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """However it stands; twice is harmless."""
        self.resume()
        self.stop(signal.SIGTERM)

    def _pause(self, pids: list[int]) -> None:
        self._paused = pids
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: all(state_of(pid) == "T" for pid in pids), "the processes are stopped")


class Fleet:
    """Processes by what they do; one may do several things."""

    def __init__(self, place: Place, settings: Mapping[str, object], *, step_s: float = 0.0) -> None:
        self.place = place
        self.processes: list[Process] = []
        self._settings = {
            "admission_requests_per_minute": 0,
            "admission_backlog_per_key": 512,
            "admission_backlog_total": 1024,
            "pepper": PEPPER,
            "namespace": place.namespace,
            **settings,
        }
        self._step_s = step_s
        self._numbers = itertools.count()

    @property
    def gateways(self) -> list[Process]:
        return self.processes

    @property
    def workers(self) -> list[Process]:
        return self.processes

    @property
    def urls(self) -> list[str]:
        """Of the gateways, dead ones as well: a client finds out."""
        return [gateway.url for gateway in self.gateways]

    def add(self, **settings: object) -> Process:
        """One more process, up and ready."""
        process = self.prepare(**settings)
        process.start()
        return process

    def prepare(self, **settings: object) -> Process:
        """One more process, not yet started."""
        name = f"data-{next(self._numbers)}"
        chosen = {**self._settings, **self.place.urls, **settings}
        process = Process(self.place, name, chosen, self._step_s)
        first_key = self.place.folder / "data-0" / "dev-key"
        if first_key.exists() and not process.data_dir.exists():
            process.data_dir.mkdir()
            (process.data_dir / "dev-key").write_text(first_key.read_text())
        self.processes.append(process)
        return process

    def remove(self, process: Process) -> None:
        """It is not coming back."""
        process.end()
        self.processes.remove(process)

    def worker_of(self, incarnation: str) -> Process | None:
        return next((each for each in self.workers if each.incarnation == incarnation), None)

    def metric(self, name: str, of: Callable[["Fleet"], list[Process]] = lambda fleet: fleet.processes) -> float:
        """The sum over the processes that run."""
        return sum(process.metric(name) for process in of(self) if process.alive)

    def close(self) -> None:
        for process in self.processes:
            process.end()


def state_of(pid: int) -> str:
    """The process's state as the kernel names it; X when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "X"


def rss_bytes(pid: int) -> int:
    """The memory a process has; 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except FileNotFoundError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")

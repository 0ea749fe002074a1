"""The processes of one place by their roles, each to be broken as a fault needs it. Knows no fault and no client."""

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from axon.runtime.datafolder import read_or_make_secret
from tests.faults import model
from tests.faults.place import Place
from tests.fleet.member import Member, Role
from tests.journeys.server import MODELS, START_S
from tests.services import warm
from tests.services.process import wait_for
from tests.vllm_environment import patience

_STOP_S = 30.0
_probing = httpx.Client(timeout=20, verify=False, limits=httpx.Limits(max_keepalive_connections=0))
"""One for all: to make a client takes longer than to ask."""


class Process(Member):
    """A member whose engine can be paused alone, and whose worker is known by its incarnation."""

    def __init__(self, place: Place, role: Role, name: str, settings: Mapping[str, object], step_s: float) -> None:
        super().__init__(role, name, place.folder, settings)
        self.incarnation = ""
        """Of a worker, in this life."""
        self._place, self._step_s = place, step_s

    @property
    def num_fds(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def pids(self) -> dict[str, int]:
        """Its own and its engine's."""
        return {self.role: self.pid} | dict(zip(["engine"], self.engine_pids(), strict=False))

    @property
    def engine_pid(self) -> int:
        """Of the engine that it runs now, as it said itself: a spare one that waits for its turn is another."""
        return int(re.findall(r'"event": "engine\.(?:re)?started".*"pid": (\d+)', self.log)[-1])

    @property
    def num_engine_restarts(self) -> int:
        return self.log.count('"engine.restarted"')

    @property
    def key(self) -> str:
        """The one that the fleet's first gateway made."""
        return self._place.key

    def wait_ready(self, timeout_s: float = START_S) -> None:
        super().wait_ready(timeout_s * patience())
        if self.role == "worker":
            self.incarnation = self._place.incarnation(self.name)

    def client(self) -> httpx.Client:
        """Of a gateway."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.key}"}, timeout=60)

    def metric(self, name: str) -> float:
        lines = _probing.get(f"{self.probe_url}/metrics").text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{name}(\{{|\s)", line))

    def make_key(self, tenant: str) -> str:
        """A key of a tenant, made as a person makes one."""
        arguments = ["keys", "create", "--tenant", tenant]
        return warm.run(arguments, environ=self.environment(), folder=self._folder, check=True).stdout.strip()

    def pause_engine(self) -> None:
        """Its streams stand still while everything around them goes on."""
        self._paused = self.engine_pids()
        for pid in self._paused:
            os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: all(state_of(pid) in "TX" for pid in self._paused), "the engine is stopped")

    def end(self) -> None:
        """However it stands; twice is harmless."""
        self.resume()
        if self.alive:
            self.send(signal.SIGTERM)
            try:
                self.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                print(f"{self.name} did not end within {_STOP_S:g} s and was killed", file=sys.stderr)

    def environment(self) -> dict[str, str]:
        ours, extra = super().environment(), model.environment(self._step_s)
        return {**ours, **extra, "PYTHONPATH": os.pathsep.join([extra["PYTHONPATH"], ours["PYTHONPATH"]])}


class Fleet:
    """``start`` and ``add``, then ``close``."""

    def __init__(self, place: Place, settings: Mapping[str, object], *, step_s: float = 0.0) -> None:
        self.place = place
        self.processes: list[Process] = []
        self._settings = {
            "admission_requests_per_minute": 0,
            "admission_concurrent": 512,
            "admission_backlog_total": 1024,
            "lifecycle_drain_s": 15.0,
            "models_dir": MODELS,
            "data_dir": place.data_dir,
            **settings,
        }
        read_or_make_secret(place.data_dir / "pepper")  # for all gateways: none makes one of its own
        self._step_s = step_s
        self._numbers = itertools.count(1)

    @property
    def gateways(self) -> list[Process]:
        return self._of("gateway")

    @property
    def workers(self) -> list[Process]:
        return self._of("worker")

    @property
    def controls(self) -> list[Process]:
        return self._of("control")

    @property
    def urls(self) -> list[str]:
        """Of the gateways, dead ones as well: a client finds out."""
        return [gateway.url for gateway in self.gateways]

    def start(self, *processes: Process) -> None:
        """All at once; returns when they are ready."""
        for process in processes:
            process.start(wait=False)
        with ThreadPoolExecutor() as waiting:
            list(waiting.map(Process.wait_ready, processes))

    def add(self, role: Role, **settings: object) -> Process:
        """One more process, up and ready."""
        process = self.make(role, **settings)
        process.start()
        return process

    def make(self, role: Role, **settings: object) -> Process:
        """One more process, not started."""
        name = f"{role}-{next(self._numbers)}"
        chosen = {"namespace": self.place.namespace, **self._settings, **self.place.urls, **settings}
        if not self.place.urls:
            del chosen["namespace"]
        process = Process(self.place, role, name, chosen, self._step_s)
        self.processes.append(process)
        return process

    def remove(self, process: Process) -> None:
        """It is not coming back."""
        process.end()
        self.processes.remove(process)

    def metric(self, name: str) -> float:
        """The sum over the processes that run."""
        return sum(process.metric(name) for process in self.processes if process.alive)

    @property
    def num_billed(self) -> float:
        """Tokens that its workers have counted, in their present lives."""
        return self.metric(r'axon_tokens_total\{kind="output".*\}')

    @property
    def num_handed_over(self) -> float:
        """Jobs that its workers have handed over to each other, in their present lives."""
        return self.metric(r"axon_handed_over_total")

    def close(self) -> None:
        for process in self.processes:
            process.resume()
            if process.alive:
                process.send(signal.SIGTERM)
        for process in self.processes:
            process.end()

    def _of(self, role: Role) -> list[Process]:
        return [process for process in self.processes if process.role == role]


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

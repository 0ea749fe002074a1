"""What the launcher's contract suite runs on: a launcher, and what only its machine can do to replicas."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from axon.adapters.launch.external import ExternalLauncher
from axon.adapters.launch.kubernetes import KubernetesLauncher
from axon.adapters.launch.kubernetes_api import KubernetesApi
from axon.adapters.launch.memory import MemoryReplicas
from axon.adapters.launch.process import ProcessLauncher
from axon.adapters.launch.system import ProcessId, is_alive
from axon.domain.fleet.replica import Launched, ReplicaName, ReplicaSpec
from axon.ports.launcher import Launcher
from axon.runtime.clock import FakeClock
from tests.journeys.server import wait_until
from tests.launch.cluster import NAMESPACE, Cluster, served

STAND_IN = """
import fcntl, os, signal, sys, time
name, version, lock = sys.argv[1:]
os.makedirs(os.path.dirname(lock), exist_ok=True)
file = open(lock, "a")
fcntl.flock(file, fcntl.LOCK_EX)
file.truncate(0)
print(os.getpid(), file=file, flush=True)
def drain(*_):
    print("drains", flush=True)
    if "stubborn" not in version:
        sys.exit(0)
signal.signal(signal.SIGTERM, drain)
print("runs", name, version, os.environ.get("SAID", ""), flush=True)
while True:
    time.sleep(0.02)
"""
"""A replica without Axon in it: it makes its name its own, as a worker does, and drains at once."""


class LauncherBackend(Protocol):
    clock: FakeClock

    def connect(self) -> Launcher:
        """A launcher, as one more control of the same machine has it."""

    async def crash(self, launched: Launched) -> None:
        """The replica ends by itself."""

    async def until_gone(self, launcher: Launcher, name: ReplicaName) -> None:
        """Waits until a stopped replica has drained."""


class MemoryMachine:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.replicas = MemoryReplicas(self.clock)

    def connect(self) -> Launcher:
        return self.replicas.connect()

    async def crash(self, launched: Launched) -> None:
        self.replicas.crash(launched.name, "ended by signal 9: runs")

    async def until_gone(self, launcher: Launcher, name: ReplicaName) -> None:
        self.replicas.finish(name)


class ProcessMachine:
    """This machine; replicas are stand-ins that end with the test."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.folder = FakeClock(), folder
        self.pids: set[int] = set()

    def connect(self, **changes: object) -> ProcessLauncher:
        environ = {"SAID": "so", "PATH": os.environ["PATH"]}
        return ProcessLauncher(self.folder, self.command, self.clock, environ=environ, **changes)  # type: ignore[arg-type]

    def command(self, name: ReplicaName, spec: ReplicaSpec) -> Sequence[str]:
        lock = self.folder / "names" / f"{name.group.deployment}%2F{name}.lock"
        return [sys.executable, "-S", "-E", "-c", STAND_IN, str(name), spec.version, str(lock)]

    def log(self, name: ReplicaName) -> str:
        path = self.folder / "replicas" / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def process(self, launched: Launched) -> ProcessId:
        pid, started, _ = launched.incarnation.split("-")
        found = ProcessId(
            pid=int(pid), started=int(started), boot=Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        )
        self.pids.add(found.pid)
        return found

    async def crash(self, launched: Launched) -> None:
        process = self.process(launched)
        wait_until(lambda: "runs" in self.log(launched.name), "the replica is up")
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(process), "it is gone")

    async def until_gone(self, launcher: Launcher, name: ReplicaName) -> None:
        async with asyncio.timeout(30):
            while name in [each.name for each in await launcher.list()]:  # noqa: ASYNC110 - no event tells its end
                await asyncio.sleep(0.01)

    async def end(self) -> None:
        for each in await self.connect().list():
            if each.incarnation[0].isdigit() and is_alive(process := self.process(each)):
                os.kill(process.pid, signal.SIGKILL)
        for pid in self.pids:
            _reap(pid)


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


@asynccontextmanager
async def memory_machine(folder: Path) -> AsyncIterator[LauncherBackend]:
    yield MemoryMachine()


@asynccontextmanager
async def process_machine(folder: Path) -> AsyncIterator[ProcessMachine]:
    machine = ProcessMachine(folder)
    try:
        yield machine
    finally:
        await machine.end()


LAUNCHERS: Mapping[str, Callable[[Path], AbstractAsyncContextManager[LauncherBackend]]] = {
    "memory": memory_machine,
    "process": process_machine,
}


class ClusterMachine:
    """A cluster whose controllers act at once. Its replicas are counted: names are places."""

    def __init__(self, api: KubernetesApi, cluster: Cluster) -> None:
        self.clock, self._api, self._cluster = FakeClock(), api, cluster

    def connect(self) -> Launcher:
        template = {"spec": {"containers": [{"name": "worker", "image": "axon:1"}]}}
        return KubernetesLauncher(self._api, template, fleet="prod")

    async def crash(self, launched: Launched) -> None:
        raise NotImplementedError("the cluster itself starts pods again")

    async def until_gone(self, launcher: Launcher, name: ReplicaName) -> None:
        self._cluster.finish()
        assert name not in [each.name for each in await launcher.list()]


@asynccontextmanager
async def cluster_machine(folder: Path) -> AsyncIterator[LauncherBackend]:
    cluster = Cluster(settles=True)
    async with served(cluster) as address, KubernetesApi(NAMESPACE, server=address, deadline_s=20.0) as api:
        yield ClusterMachine(api, cluster)


class Recommended:
    """Nobody runs what is recommended: there is nothing to crash."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self._launcher = ExternalLauncher(self.clock)

    def connect(self) -> Launcher:
        return self._launcher

    async def crash(self, launched: Launched) -> None:
        raise NotImplementedError("nothing runs")

    async def until_gone(self, launcher: Launcher, name: ReplicaName) -> None:
        self.clock.advance(1.0)
        assert name not in [each.name for each in await launcher.list()]


@asynccontextmanager
async def recommended(folder: Path) -> AsyncIterator[LauncherBackend]:
    yield Recommended()


EVERY = {**LAUNCHERS, "kubernetes": cluster_machine, "external": recommended}
"""Those too that start nothing again by themselves."""

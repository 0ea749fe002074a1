"""One rendered pod as a process of this machine: its command, environment, probes and stop, as its manifest says.

It has an address of its own on the loopback network, in place of the cluster's, and a folder in place of its volumes.
It has no image, no user and no limits of its own: those are only checked as text.
"""

import asyncio
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.deploy.chart import Workload
from tests.services import warm
from tests.services.process import private_folder, unprivileged
from tests.services.reaper import adopt
from tests.services.require import find

_LOOK_S = 0.05
_LEAST_TIMEOUT_S = 2.0
"""A busy machine may take as long to answer a probe."""


@dataclass(frozen=True)
class Place:
    """What pods find around them."""

    folder: Path
    secrets: Mapping[str, str]
    """By the key in the Secret."""
    files: Mapping[str, Mapping[str, str]]
    """What ConfigMaps hold, by their names."""
    services: Mapping[str, str]
    """Address of each Service's port: ``axon-gateway:8000`` is ``127.0.0.1:…``."""
    environ: Mapping[str, str]
    """Variables in place of those of the manifest."""
    speed: float = 1.0
    """How much faster the cluster's clock runs: of probes, sleeps before a stop, and the grace of what hangs."""


@dataclass
class Life:
    """What has happened to a pod."""

    restarts: int = 0
    reasons: list[str] = field(default_factory=list)
    killed: int = 0
    """How often it had to be killed because its grace was over."""
    stop_s: float = 0.0
    exit_codes: list[int] = field(default_factory=list)


class Pod:
    """``run`` until ``delete``; ``ready`` as its Service sees it."""

    def __init__(self, workload: Workload, name: str, address: str, zone: str, place: Place) -> None:
        self.workload, self.name, self.address, self.zone = workload, name, address, zone
        self.life = Life()
        self.ready = self.terminating = False
        self._place, self._container = place, workload.container
        self.folder = place.folder / name
        self._process: warm.Process | subprocess.Popen[bytes] | None = None
        self._http: httpx.AsyncClient | None = None
        self._stopping = asyncio.Lock()

    @property
    def labels(self) -> Mapping[str, str]:
        return self.workload.labels

    @property
    def _needs_a_user(self) -> bool:
        """Whether it gives up root's rights, after which it could not write its pod's folder."""
        return bool(self._container["command"] == ["nginx"])

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def port(self, name: str) -> int:
        (found,) = [port["containerPort"] for port in self._container["ports"] if port["name"] == name]
        return int(found)

    async def run(self) -> None:
        """Starts it, and again whenever it ends or its probes say so, until it is deleted."""
        async with httpx.AsyncClient(trust_env=False) as self._http:
            while not self.terminating:
                self._start()
                reason = await self._watch()
                self.ready = False
                if not self.terminating:
                    self.life.restarts += 1
                    self.life.reasons.append(reason)

    async def delete(self) -> None:
        """As an eviction or a rollout does it: no Service knows it any more, and it has its grace to end."""
        self.ready, self.terminating = False, True
        began = time.monotonic()
        await self._end(float(self.workload.spec["terminationGracePeriodSeconds"]))
        self.life.stop_s = time.monotonic() - began

    def _start(self) -> None:
        for name in ("data", "tmp"):
            private_folder(self.folder / name)
        self.mount()
        log_path = self.folder / "log"
        log_path.touch()
        log_path.chmod(0o666)  # nginx opens its stderr again, as its own user
        command = [self._text(each) for each in (*self._container["command"], *self._container.get("args", []))]
        with log_path.open("ab") as log:
            if command[0] == "axon":
                self._process = warm.start(
                    command[1:],
                    environ=self.environment(),
                    folder=self.folder,
                    stdout=log,
                    stderr=log,
                    new_session=True,
                )
            else:
                command[0] = _program(command[0])
                ordinary = unprivileged(command) if self._needs_a_user else command
                self._process = subprocess.Popen(ordinary, stdout=log, stderr=log, start_new_session=True)
        adopt(self._process.pid)

    def mount(self) -> None:
        """Writes what its volumes have of ConfigMaps and Secrets."""
        for volume in self.workload.spec["volumes"]:
            config = volume.get("configMap") or {"name": ""}
            for item in config.get("items") or []:
                text = self._place.files[config["name"]][item["key"]]
                self._write(self.folder / item["path"], self._text(text))
            for source in (volume.get("projected") or {"sources": []})["sources"]:
                held = self._place.files[source["configMap"]["name"]] if "configMap" in source else self._place.secrets
                for item in (source.get("secret") or source["configMap"])["items"]:
                    self._write(self.folder / volume["name"] / item["path"], held[item["key"]])

    def _write(self, path: Path, text: str) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def environment(self) -> dict[str, str]:
        """Of its process: what the manifest says, and of this machine's what is not Axon's."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("AXON_", "HOME"))}
        own = {each["name"]: self._value(each) for each in self._container["env"]}
        return {**clean, "PYTHONPATH": str(warm.SOURCE), **own, **self._place.environ}

    def _value(self, env: Mapping[str, Any]) -> str:
        if "value" in env:
            return self._text(env["value"])
        source = env["valueFrom"]
        if "secretKeyRef" in source:
            return self._place.secrets[source["secretKeyRef"]["key"]]
        return {"metadata.name": self.name}.get(source["fieldRef"]["fieldPath"], self.zone)

    def _text(self, text: str) -> str:
        """The manifest's text with this machine's addresses and folders for those of a pod."""
        here = {
            "0.0.0.0": self.address,
            "listen 80": f"listen {self.address}:80",
            "/var/lib/axon": str(self.folder / "data"),
            "/etc/axon-edge": str(self.folder),
            "/etc/axon-secrets": str(self.folder / "secrets"),
            "/tmp/": f"{self.folder}/tmp/",
            **self._place.services,
        }
        theirs = re.compile("|".join(map(re.escape, sorted(here, key=len, reverse=True))))
        return theirs.sub(lambda match: here[match[0]], text)  # in one pass: what is put in is not looked through

    async def _watch(self) -> str:
        """Probes it until it has ended or must be restarted, and then it has ended; says why."""
        ended = asyncio.create_task(self._until_ended())
        probing = asyncio.create_task(self._probe())
        try:
            done, _ = await asyncio.wait([ended, probing], return_when=asyncio.FIRST_COMPLETED)
            if probing in done and not self.terminating:
                self.ready = False
                reason = probing.result()
                grace_s = float(self._container["livenessProbe"].get("terminationGracePeriodSeconds", 30))
                await self._end(grace_s / self._place.speed)
                return reason
            await ended
            return f"ended with {self.life.exit_codes[-1]}"
        finally:
            probing.cancel()
            with suppress(asyncio.CancelledError):
                await probing
            await ended

    async def _until_ended(self) -> None:
        assert self._process is not None
        while (code := self._process.poll()) is None:  # noqa: ASYNC110 - no event tells its end
            await asyncio.sleep(_LOOK_S)
        self.life.exit_codes.append(code)

    async def _probe(self) -> str:
        """Returns the reason when it must be restarted."""
        startup = self._container["startupProbe"]
        if not await self._succeeds(startup, int(startup["failureThreshold"])):
            return "it did not start"
        reading = asyncio.create_task(self._read_readiness())
        try:
            await self._fails(self._container["livenessProbe"])
            return "it is not alive"
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    async def _succeeds(self, probe: Mapping[str, Any], tries: int) -> bool:
        for _ in range(tries):
            if await self._ask(probe):
                return True
            await asyncio.sleep(self._period_s(probe))
        return False

    async def _fails(self, probe: Mapping[str, Any]) -> None:
        failures = 0
        while failures < int(probe["failureThreshold"]):
            await asyncio.sleep(self._period_s(probe))
            failures = 0 if await self._ask(probe) else failures + 1

    async def _read_readiness(self) -> None:
        probe = self._container["readinessProbe"]
        while True:
            self.ready = await self._ask(probe) and not self.terminating
            await asyncio.sleep(self._period_s(probe))

    def _period_s(self, probe: Mapping[str, Any]) -> float:
        return float(probe["periodSeconds"]) / self._place.speed

    async def _ask(self, probe: Mapping[str, Any]) -> bool:
        get = probe["httpGet"]
        url = f"http://{self.address}:{self.port(get['port'])}{get['path']}"
        timeout_s = max(_LEAST_TIMEOUT_S, float(probe["timeoutSeconds"]) / self._place.speed)
        assert self._http is not None
        try:
            return (await self._http.get(url, timeout=timeout_s)).status_code == 200
        except httpx.HTTPError:
            return False

    async def _end(self, grace_s: float) -> None:
        """The hook before the stop, SIGTERM, and SIGKILL when the grace is over."""
        async with self._stopping:
            deadline = time.monotonic() + grace_s
            with suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await self._hook()
            self._signal(signal.SIGTERM)
            while self._alive() and time.monotonic() < deadline:  # noqa: ASYNC110 - no event tells its end
                await asyncio.sleep(_LOOK_S)
            if self._alive():
                self.life.killed += 1
                self._signal(signal.SIGKILL)

    async def _hook(self) -> None:
        hook = (self._container.get("lifecycle") or {}).get("preStop") or {}
        if "sleep" in hook:
            await asyncio.sleep(float(hook["sleep"]["seconds"]) / self._place.speed)
        elif "exec" in hook and self._alive():
            words = [self._hurried(self._text(each)) for each in hook["exec"]["command"]]
            command = unprivileged(words) if self._needs_a_user else words
            path = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
            process = await asyncio.create_subprocess_exec(*command, env=path, stderr=subprocess.DEVNULL)
            adopt(process.pid)
            try:
                await process.wait()
            finally:
                if process.returncode is None:
                    process.kill()

    def _hurried(self, command: str) -> str:
        return re.sub(r"\bsleep (\d+)", lambda match: f"sleep {float(match[1]) / self._place.speed:g}", command)

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _signal(self, number: int) -> None:
        if self._alive():
            with suppress(ProcessLookupError):
                assert self._process is not None
                self._process.send_signal(number)

    async def abolish(self) -> None:
        """Ends it at once, whatever it does."""
        self.terminating, self.ready = True, False
        with suppress(ProcessLookupError, PermissionError):
            if self._alive():
                os.killpg(self.pid, signal.SIGCONT)
                os.killpg(self.pid, signal.SIGKILL)


def _program(name: str) -> str:
    found = find(name)
    assert found is not None, f"{name} is not installed"
    return found

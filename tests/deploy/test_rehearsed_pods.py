"""The rehearsal's own pods and Services do what a cluster does with them, and notice what goes wrong."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.deploy.chart import Workload
from tests.deploy.rehearsal.deployment import addresses
from tests.deploy.rehearsal.pod import Place, Pod
from tests.deploy.rehearsal.service import Service
from tests.long import whole

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not whole(), reason="probes twenty times as fast need a machine of their own"),
]

PROGRAM = """
import http.server, os, signal, sys
address, stubborn = sys.argv[1:]
states = {"/livez": 200, "/readyz": 200}
if stubborn == "yes":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(states.get(self.path, 200))
        self.end_headers()
        self.wfile.write(str(os.getpid()).encode())
    def do_POST(self):
        path, code = self.path.split("=")
        states[path] = int(code)
        self.do_GET()
    def log_message(self, *_):
        pass
http.server.HTTPServer((address, 8002), Handler).serve_forever()
"""
"""Answers probes as it is told to: ``POST /livez=500``."""


def workload(*, stubborn: bool = False, grace_s: float = 20) -> Workload:
    probe = {"httpGet": {"port": "metrics"}, "periodSeconds": 1, "timeoutSeconds": 2, "failureThreshold": 3}
    probes = {
        f"{name}Probe": {**probe, "httpGet": {"port": "metrics", "path": path}}
        for name, path in (("startup", "/livez"), ("liveness", "/livez"), ("readiness", "/readyz"))
    }
    container: dict[str, Any] = {
        "command": [sys.executable, "-c", PROGRAM],
        "args": ["0.0.0.0", "yes" if stubborn else "no"],
        "ports": [{"name": "metrics", "containerPort": 8002}],
        **probes,
        "startupProbe": {**probes["startupProbe"], "failureThreshold": 1000},
    }
    spec = {"containers": [container], "volumes": [], "terminationGracePeriodSeconds": grace_s}
    return Workload("stand-in", "Deployment", {"metadata": {"labels": {"app": "stand-in"}}, "spec": spec}, {})


@asynccontextmanager
async def running(folder: Path, what: Workload) -> AsyncIterator[Pod]:
    place = Place(folder=folder, secrets={}, files={}, services={}, environ={}, speed=20.0)
    pod = Pod(what, "stand-in-0", next(addresses()), "zone-a", place)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(pod.run())
        try:
            await until(lambda: pod.ready)
            yield pod
        finally:
            await pod.abolish()


async def until(true: Any) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110 - pods say it by a field
            await asyncio.sleep(0.01)


async def tell(pod: Pod, what: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        await client.post(f"http://{pod.address}:8002{what}")


async def test_a_pod_that_is_not_alive_is_restarted_and_ready_again(tmp_path: Path) -> None:
    async with running(tmp_path, workload()) as pod:
        await tell(pod, "/livez=500")
        await until(lambda: pod.life.restarts == 1 and pod.ready)
        assert pod.life.reasons == ["it is not alive"]


async def test_a_pod_that_ends_by_itself_is_restarted(tmp_path: Path) -> None:
    async with running(tmp_path, workload()) as pod:
        with suppress(ProcessLookupError):
            os.kill(pod.pid, signal.SIGKILL)
        await until(lambda: pod.life.restarts == 1 and pod.ready)
        assert pod.life.reasons == ["ended with -9"]


async def test_a_service_leads_to_ready_pods_alone(tmp_path: Path) -> None:
    async with running(tmp_path, workload()) as pod:
        service = Service({"app": "stand-in"}, "metrics", lambda: [pod])
        url = f"http://{await service.open()}/"
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(url)).text == str(pod.pid)
        await tell(pod, "/readyz=503")
        await until(lambda: not pod.ready)
        async with httpx.AsyncClient(trust_env=False) as client:
            with suppress(httpx.TransportError):
                await client.get(url)
        assert service.refused == 1
        assert pod.life.restarts == 0, "one that is not ready is left alone"
        await service.aclose()


async def test_a_pod_that_does_not_end_in_its_grace_is_killed_and_counted(tmp_path: Path) -> None:
    async with running(tmp_path, workload(stubborn=True, grace_s=0.3)) as pod:
        await pod.delete()
        assert pod.life.killed == 1
        assert not pod.ready
    async with running(tmp_path, workload()) as gentle:
        await gentle.delete()
        assert gentle.life.killed == 0

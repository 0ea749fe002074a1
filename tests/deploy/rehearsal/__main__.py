"""The chart's rules tried without a cluster: an upgrade under load, and a probe that fails.

python -m tests.deploy.rehearsal                       1,000 streams through an upgrade; a table, and one JSON line last
python -m tests.deploy.rehearsal --requests 40 --speed 10

The rendered pods run as processes of this machine, with their commands, environment, probes and stop signals; nginx is
in front of them, and Redis, RabbitMQ and PostgreSQL are real. Clients are OpenAI's own with their own retries, streams
are followed by ``axon.client``. An answer counts when it is the one that the undisturbed fleet gave.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy.rehearsal.cluster import Rehearsed, rehearsed
from tests.fleet.fleet import shared_place
from tests.fleet.rolling import Load, Report

STREAMS = ("chat stream", "response stream")
_RESTART_S = 240.0


@dataclass
class Rehearsal:
    """What was seen."""

    upgrade: Report
    probes: Report
    restarted: dict[str, list[str]] = field(default_factory=dict)
    """Of each pod that was made to hang: why it was restarted."""
    unasked: list[str] = field(default_factory=list)
    """Restarts that nobody meant, and pods that had to be killed."""
    stops_s: dict[str, float] = field(default_factory=dict)
    refused: int = 0
    upgrade_s: float = 0.0

    @property
    def ok(self) -> bool:
        hung = all(reasons == ["it is not alive"] for reasons in self.restarted.values())
        return not self.upgrade.failures and not self.probes.failures and not self.unasked and hung


def rehearse(
    requests: int, *, clients: int = 8, speed: float = 1.0, hang: tuple[str, ...] = ("worker", "gateway")
) -> Rehearsal:
    """An upgrade under load, then a probe that fails, under load too."""
    meeting = shared_place()
    with tempfile.TemporaryDirectory(prefix="axon-rehearsal-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # nginx runs as another user
        return asyncio.run(_rehearse(folder, meeting, requests, clients, speed, hang))


async def _rehearse(
    folder: Path, meeting: Mapping[str, object], requests: int, clients: int, speed: float, hang: tuple[str, ...]
) -> Rehearsal:
    found = Rehearsal(Report(), Report())
    async with rehearsed(folder, meeting, speed=speed) as release:
        key = await asyncio.to_thread(release.key)
        await _load(release, key, found.upgrade, requests, clients, _upgrading(release, found))
        await _load(release, key, found.probes, requests // 5, clients, _hanging(release, found, hang))
        _sum_up(release, found)
    return found


async def _load(
    release: Rehearsed, key: str, report: Report, requests: int, clients: int, meanwhile: Coroutine[None, None, None]
) -> None:
    """So many streams at least, and until what happens meanwhile is over."""
    load = Load(release.url, key, report, seed=1, kinds=STREAMS)
    enough = threading.Event()
    try:
        await load.learn()
        began = time.monotonic()

        async def happening() -> None:
            try:
                await meanwhile
            finally:
                enough.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(happening())
            tasks.create_task(load.run(requests, enough, clients=clients))
        report.wall_s = time.monotonic() - began
    finally:
        await load.aclose()


async def _upgrading(release: Rehearsed, found: Rehearsal) -> None:
    began = time.monotonic()
    await release.upgrade()
    found.upgrade_s = time.monotonic() - began
    found.stops_s = {pod.name: round(pod.life.stop_s, 1) for pod in release.pods if pod.terminating}


async def _hanging(release: Rehearsed, found: Rehearsal, roles: tuple[str, ...]) -> None:
    """One pod of each role stops where it stands; its probe notices, and it comes back."""
    for role in roles:
        pod = release.serving(role)[0]
        os.kill(pod.pid, signal.SIGSTOP)
        async with asyncio.timeout(_RESTART_S):
            while not (pod.life.restarts and pod.ready):  # noqa: ASYNC110 - pods say it by a field
                await asyncio.sleep(0.05)
        found.restarted[pod.name] = pod.life.reasons


def _sum_up(release: Rehearsed, found: Rehearsal) -> None:
    for pod in release.pods:
        hung = pod.name in found.restarted
        if pod.life.restarts and not hung:
            found.unasked.append(f"{pod.name} was restarted: {pod.life.reasons}\n{pod.log[-2000:]}")
        if pod.life.killed and not hung:
            found.unasked.append(f"{pod.name} had to be killed when its grace was over\n{pod.log[-2000:]}")
    found.refused = sum(each.refused for each in release.services.values())


def show(found: Rehearsal) -> None:
    """A table for people, one line for machines."""
    for name, seconds in found.stops_s.items():
        print(f"{name:<28} stopped in {seconds:>6.1f} s")
    for name, reasons in found.restarted.items():
        print(f"{name:<28} restarted: {', '.join(reasons)}")
    for problem in [*found.upgrade.failures[:10], *found.probes.failures[:10], *found.unasked]:
        print(f"failed: {problem}", file=sys.stderr)
    print(
        json.dumps(
            {
                "streams": found.upgrade.num_requests,
                "failed": len(found.upgrade.failures),
                "asked_again": dict(found.upgrade.refusals),
                "upgrade_s": round(found.upgrade_s, 1),
                "pods_replaced": len(found.stops_s),
                "streams_while_probes_failed": found.probes.num_requests,
                "failed_then": len(found.probes.failures),
                "asked_again_then": dict(found.probes.refusals),
                "restarted": len(found.restarted),
                "connections_refused": found.refused,
                "unasked": len(found.unasked),
            }
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.deploy.rehearsal", description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--speed", type=float, default=1.0, help="how much faster probes and sleeps before a stop run")
    options = parser.parse_args()
    found = rehearse(options.requests, clients=options.clients, speed=options.speed)
    show(found)
    return 0 if found.ok else 1


if __name__ == "__main__":
    sys.exit(main())

"""A Deployment: as many pods as it says, replaced by the rules of its rolling update."""

import asyncio
import itertools
import random
from collections.abc import Iterator

from tests.deploy.chart import Workload
from tests.deploy.rehearsal.pod import Place, Pod

ZONES = ("zone-a", "zone-b", "zone-c")
_READY_S = 120.0
_LOOK_S = 0.05


def addresses() -> Iterator[str]:
    """Loopback addresses, each once; where they begin differs from run to run."""
    first = random.SystemRandom().randrange(2, 200)
    return (f"127.77.{(first + number // 250) % 256}.{number % 250 + 2}" for number in itertools.count())


class Deployment:
    """``roll`` brings it to another template; ``pods`` has all that it ever made."""

    def __init__(self, workload: Workload, place: Place, address: Iterator[str], tasks: asyncio.TaskGroup) -> None:
        self.workload, self.pods = workload, list[Pod]()
        self.replicas = int(workload.owner["spec"]["replicas"])
        self._place, self._address, self._tasks = place, address, tasks
        self._number = itertools.count()

    @property
    def serving(self) -> list[Pod]:
        return [pod for pod in self.pods if not pod.terminating]

    def fill(self) -> None:
        """Makes the pods that are missing."""
        while len(self.serving) < self.replicas:
            self._add()

    async def until_ready(self) -> None:
        async with asyncio.timeout(_READY_S):
            while not all(pod.ready for pod in self.serving):  # noqa: ASYNC110 - pods say it by a field
                await asyncio.sleep(_LOOK_S)

    async def roll(self, workload: Workload) -> None:
        """New pods come and old ones go, never more of either than the strategy allows; waits for the last to end."""
        self.workload = workload
        strategy = workload.owner["spec"]["strategy"]["rollingUpdate"]
        most = self.replicas + int(strategy["maxSurge"])
        least = self.replicas - int(strategy["maxUnavailable"])
        ending: list[asyncio.Task[None]] = []
        async with asyncio.timeout(_READY_S * self.replicas):
            while old := [pod for pod in self.serving if pod.workload is not workload]:
                new = len(self.serving) - len(old)
                if new < self.replicas and len(self.serving) < most:
                    self._add()
                elif sum(pod.ready for pod in self.serving) > least or not old[0].ready:
                    ending.append(self._tasks.create_task(old[0].delete()))
                    await asyncio.sleep(0)
                await asyncio.sleep(_LOOK_S)
            await self.until_ready()
        for each in ending:
            await each

    def _add(self) -> None:
        number = next(self._number)
        name = f"{self.workload.name}-{number}"
        pod = Pod(self.workload, name, next(self._address), ZONES[number % len(ZONES)], self._place)
        self.pods.append(pod)
        self._tasks.create_task(pod.run())

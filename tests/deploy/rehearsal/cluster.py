"""All that the chart renders, as processes of this machine: Deployments, Services, and real services behind them."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.deploy.chart import Object, Workload, of_kind, rendered, workloads
from tests.deploy.rehearsal.deployment import Deployment, addresses
from tests.deploy.rehearsal.pod import Place, Pod
from tests.deploy.rehearsal.service import Service
from tests.services import warm

ORDER = ("control", "worker", "gateway", "edge")
"""In which roles are upgraded: workers before gateways, whose jobs they must understand."""


class Rehearsed:
    """A running release; ``upgrade`` brings the next one."""

    def __init__(self, deployments: list[Deployment], services: dict[str, Service], url: str) -> None:
        self.deployments, self.services, self.url = deployments, services, url

    @property
    def pods(self) -> list[Pod]:
        return [pod for each in self.deployments for pod in each.pods]

    def serving(self, role: str) -> list[Pod]:
        return [pod for pod in self.pods if pod.labels["axon.dev/role"] == role and not pod.terminating]

    async def until_ready(self) -> None:
        for each in self.deployments:
            await each.until_ready()

    async def upgrade(self) -> None:
        """Every Deployment to the next release's template, all at once, as `helm upgrade` does it."""
        new = {each.name: each for each in workloads(rendered("rehearsal-next"))}
        async with asyncio.TaskGroup() as tasks:
            for each in self.deployments:
                tasks.create_task(each.roll(new[each.workload.name]))

    def key(self) -> str:
        """An API key, made as an operator makes one: by a command in a gateway's pod."""
        pod = self.serving("gateway")[0]
        command = ["keys", "create", "--tenant", "rehearsal"]
        return warm.run(command, environ=pod.environment(), folder=pod.folder, check=True).stdout.strip()


@asynccontextmanager
async def rehearsed(folder: Path, meeting: Mapping[str, object], *, speed: float = 1.0) -> AsyncIterator[Rehearsed]:
    """The chart's first release, all of it ready; ``meeting`` is where the services are."""
    objects = rendered("rehearsal")
    deployments: list[Deployment] = []
    async with AsyncExitStack() as stack:
        services = {}
        for each in of_kind(objects, "Service"):
            if each["spec"].get("clusterIP") != "None":
                made = _service(each, deployments)
                services[each["metadata"]["name"]] = made
                stack.push_async_callback(made.aclose)
        opened = {name: await each.open() for name, each in services.items()}
        place = Place(
            folder=folder,
            secrets={
                **{word: str(meeting[word]) for word in ("queue", "live", "store")},
                "pepper": secrets.token_hex(),
            },
            files={each["metadata"]["name"]: each["data"] for each in of_kind(objects, "ConfigMap")},
            services={f"{name}:8000": address for name, address in opened.items()},
            environ={"AXON_NAMESPACE": str(meeting["namespace"])},
            speed=speed,
        )
        async with asyncio.TaskGroup() as tasks:
            address = addresses()
            deployments += [Deployment(each, place, address, tasks) for each in _in_order(objects)]
            release = Rehearsed(deployments, services, f"http://{opened['axon']}")
            try:
                for deployment in deployments:
                    deployment.fill()
                await release.until_ready()
                yield release
            finally:
                for pod in release.pods:
                    await pod.abolish()


def _service(manifest: Object, deployments: list[Deployment]) -> Service:
    (port,) = [each for each in manifest["spec"]["ports"] if each["name"] == "http"]
    return Service(
        manifest["spec"]["selector"], port["targetPort"], lambda: [pod for each in deployments for pod in each.pods]
    )


def _in_order(objects: list[Object]) -> list[Workload]:
    return sorted(workloads(objects), key=lambda each: ORDER.index(each.labels["axon.dev/role"]))

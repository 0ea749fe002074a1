"""A fleet as one server: what suites ask of a ``Server``, asked of nginx and all behind it."""

import subprocess

import httpx

from tests.fleet.fleet import Fleet
from tests.services import warm


class Face:
    """Looks like ``tests.journeys.server.Server`` to whoever only talks to it."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    @property
    def url(self) -> str:
        return self._fleet.url

    @property
    def key(self) -> str:
        return self._fleet.key

    @property
    def environment(self) -> dict[str, str]:
        """Of a command that is to meet the same store."""
        return self._fleet.gateways[0].environment()

    def axon(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command beside it, with its settings."""
        return warm.run(arguments, environ=self.environment, folder=self._fleet.folder)

    def client(self) -> httpx.Client:
        return self._fleet.client()

    def metric(self, name: str) -> float:
        """The sum over all its processes."""
        return sum(member.metric(name) for member in self._fleet.members)

    def engine_pids(self) -> list[int]:
        return [pid for worker in self._fleet.workers for pid in worker.engine_pids()]

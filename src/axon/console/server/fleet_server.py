"""HTTP client of a server's workers, for the command line. Shows nothing itself."""

from urllib.parse import quote

import httpx

from axon.console.server.server import Server


class FleetServer(Server):
    """A connection to a server; use it as a context."""

    def drain(self, worker: str) -> None:
        """Tells the worker of this name to drain."""
        try:
            response = self._client.post(f"/v1/admin/workers/{quote(worker, safe='')}/drain")
        except httpx.HTTPError as error:
            raise self.translate(error) from error
        self.check(response)

"""HTTP client of a server's traces, for the command line. Shows nothing itself."""

from typing import TypeVar
from urllib.parse import quote

import httpx
import msgspec

from axon.console.server.server import Server
from axon.domain.tracing.drawn import Drawn
from axon.domain.tracing.slowest import Slowest

T = TypeVar("T", Drawn, Slowest)


class TraceServer(Server):
    """A connection to a server; use it as a context."""

    def trace(self, name: str) -> Drawn:
        """The trace of the turn or request with this id."""
        return self._got(f"/v1/admin/traces/{quote(name, safe='')}", Drawn)

    def slowest(self, *, most: int, since_s: int) -> Slowest:
        """The slowest turns of the last ``since_s`` seconds."""
        return self._got(f"/v1/admin/traces?limit={most}&since_s={since_s}", Slowest)

    def _got(self, path: str, kind: type[T]) -> T:
        try:
            response = self._client.get(path)
        except httpx.HTTPError as error:
            raise self.translate(error) from error
        self.check(response)
        return msgspec.json.decode(response.content, type=kind)

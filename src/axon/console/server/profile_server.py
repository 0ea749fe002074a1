"""HTTP client of a server's profiles, for the command line. Shows nothing itself."""

from typing import Any

import httpx

from axon.console.server.server import Server
from axon.errors import AxonError, Forbidden
from axon.profiling.profile import TYPES, Kind, Profile

_MARGIN_S = 60.0
"""Longest wait beyond the profile's own seconds."""


class ProfileServer(Server):
    """A connection to a server; use it as a context."""

    def processes(self) -> list[dict[str, Any]]:
        """The processes that can be profiled, as the server lists them."""
        found: list[dict[str, Any]] = self._asked("GET", "/v1/admin/processes").json()["data"]
        return found

    def profile(self, kind: Kind, process: str, seconds: float) -> Profile:
        """Records a profile; returns after ``seconds``."""
        import msgspec

        body = {"kind": kind.value, "process": process, "seconds": seconds, "format": "json"}
        reply = self._asked("POST", "/v1/admin/profiles", json=body, timeout=seconds + _MARGIN_S)
        try:
            profile: Profile = msgspec.json.decode(reply.content, type=TYPES[kind])
        except msgspec.MsgspecError as error:
            raise AxonError(f"The server at {self.url} sent no profile: {error}. Is it of this release?") from None
        return profile

    def _asked(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            response = self._client.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise self.translate(error) from error
        if response.status_code == 403:
            raise Forbidden(
                "This key may not profile: it needs the scope admin. Make one with `axon keys create --scope admin`, "
                "and give it with --key or AXON_API_KEY."
            )
        self.check(response)
        return response

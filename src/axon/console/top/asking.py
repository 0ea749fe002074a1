"""Asks a server for looks, and remembers the last ones. Knows no terminal."""

from collections import deque

import httpx
import msgspec

from axon.console.server.server import Server
from axon.console.top.rates import Rates, baseline, rates
from axon.domain.overview import Overview
from axon.errors import AxonError, NotFound, Unavailable

PATH = "/v1/admin/overview"
TIMEOUT_S = 5.0
"""Seconds after which a server that does not answer is asked again."""
WINDOW_S = 3.0
"""Rates are of at least so many seconds, because workers announce themselves about once a second."""
_KEPT = 64
_MAX_BYTES = 16 * 1024 * 1024

_DECODER = msgspec.json.Decoder(Overview)


async def ask(server: Server, client: httpx.AsyncClient) -> Overview:
    """One look; raises an error that a person is told."""
    try:
        async with client.stream("GET", PATH) as response:
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > _MAX_BYTES:
                    raise AxonError(f"The answer of {server.url} is too large. Is it Axon?")
            if response.status_code == 404:
                raise NotFound(f"The server at {server.url} has no {PATH}: it runs an earlier release of Axon.")
            if response.is_error:
                server.check(httpx.Response(response.status_code, content=bytes(body)))
    except httpx.TimeoutException as error:
        raise Unavailable(f"{server.url} has not answered within {TIMEOUT_S:.0f} s.") from error
    except httpx.HTTPError as error:
        raise server.translate(error) from error
    try:
        return _DECODER.decode(bytes(body))
    except msgspec.DecodeError as error:
        raise AxonError(f"{server.url} answered something that is no overview. Is it Axon?") from error


class History:
    """The last looks: ``add`` each, and have the rates up to it."""

    def __init__(self) -> None:
        self._looks: deque[Overview] = deque(maxlen=_KEPT)

    def add(self, look: Overview, *, window_s: float) -> Rates:
        """The rates over the last ``window_s`` seconds, or as long as looks were kept."""
        before = baseline(self._looks, look, window_s)
        self._looks.append(look)
        return rates(before, look)

"""Posts exports to a collector over HTTP: bounded in time and in what is read of the answer. Knows no span."""

import asyncio
import ssl
from functools import cached_property
from typing import Any

import httpx
import requests

_MAX_ANSWER_BYTES = 64 << 10
"""Bytes that are read of an answer; nobody needs what comes after them."""


class BoundedSession(requests.Session):
    """A session for OpenTelemetry's exporter, whose own waits for every byte of an answer anew, and reads all of them.

    ``timeout`` is that of the whole exchange. An answer that is not a success is not taken for one: a redirect is an
    error, since spans that were not taken there are lost.
    """

    def request(self, method: str, url: str, **asked: Any) -> requests.Response:  # type: ignore[override]
        """Sends one export and returns the answer without its body."""
        content, timeout_s = asked.get("data") or b"", asked.get("timeout")
        try:
            found = asyncio.run(self._post(method, url, asked.get("headers") or {}, content, timeout_s))
        except TimeoutError as error:
            raise requests.exceptions.Timeout("The collector did not answer in time.") from error
        except httpx.TransportError as error:
            raise requests.exceptions.ConnectionError(type(error).__name__) from error
        if found.is_redirect:
            raise requests.exceptions.TooManyRedirects("The collector sends its clients elsewhere.")
        answer = requests.Response()
        answer.status_code, answer.reason, answer.url = found.status_code, found.reason_phrase, url
        answer.headers.update(found.headers)
        return answer

    async def _post(
        self, method: str, url: str, headers: dict[str, str], content: bytes, timeout_s: float | None
    ) -> httpx.Response:
        async with (
            asyncio.timeout(timeout_s),
            httpx.AsyncClient(timeout=timeout_s, verify=self._trust) as client,
            client.stream(method, url, headers={**self._own, **headers}, content=content) as answer,
        ):
            num_bytes = 0
            async for chunk in answer.aiter_raw(_MAX_ANSWER_BYTES):
                num_bytes += len(chunk)
                if num_bytes >= _MAX_ANSWER_BYTES:
                    break
            return answer

    @property
    def _own(self) -> dict[str, str]:
        """The headers of every export."""
        return {name: value for name, value in self.headers.items() if isinstance(value, str)}

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        """Which certificates are trusted, and which one is shown, as the exporter has set them."""
        context = httpx.create_ssl_context()
        if isinstance(self.verify, str):
            context = ssl.create_default_context(cafile=self.verify)
        if isinstance(self.cert, str):
            context.load_cert_chain(self.cert)
        elif self.cert:
            context.load_cert_chain(*self.cert)
        return context

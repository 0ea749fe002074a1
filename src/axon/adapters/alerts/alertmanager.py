"""The alerts of a Prometheus Alertmanager, asked by its API v2. Knows no alert rule."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import httpx
import msgspec

from axon.errors import DependencyDown, Misconfigured
from axon.ports.alerts import ActiveAlert

_DEADLINE_S: Final = 5.0
_MAX_BYTES: Final = 4 << 20
_MAX_ALERTS: Final = 1000
CODE: Final = "alerts_unavailable"


class _Status(msgspec.Struct, frozen=True):
    state: str = "unprocessed"
    silencedBy: tuple[str, ...] = ()
    inhibitedBy: tuple[str, ...] = ()


class _Alert(msgspec.Struct, frozen=True):
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = {}
    startsAt: str = ""
    status: _Status = _Status()


class Alertmanager:
    """Asks one Alertmanager, each time anew: its answer is never older than the question."""

    def __init__(self, url: str, *, deadline_s: float = _DEADLINE_S, max_bytes: int = _MAX_BYTES) -> None:
        if not _is_address(url):
            raise Misconfigured("alerts.url must be the http or https URL of an Alertmanager.")
        self._url = f"{url.rstrip('/')}/api/v2/alerts"
        self._deadline_s, self._max_bytes = deadline_s, max_bytes

    async def active(self) -> Sequence[ActiveAlert]:
        try:
            async with asyncio.timeout(self._deadline_s):
                content = await self._read()
        except (httpx.HTTPError, TimeoutError) as error:
            raise DependencyDown("The Alertmanager does not answer.", code=CODE) from error
        try:
            found = msgspec.json.decode(content, type=tuple[_Alert, ...])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DependencyDown("The Alertmanager's answer is no list of alerts.", code=CODE) from error
        return sorted(map(_value, found), key=lambda alert: (alert.starts_at, alert.name))[:_MAX_ALERTS]

    async def _read(self) -> bytes:
        """The body of its answer, without redirects and within the bound."""
        content = bytearray()
        async with (
            httpx.AsyncClient(timeout=self._deadline_s, trust_env=False) as client,
            client.stream("GET", self._url, headers={"Accept-Encoding": "identity"}) as answer,
        ):
            if answer.status_code != 200:
                raise DependencyDown(f"The Alertmanager answers with {answer.status_code}.", code=CODE)
            async for chunk in answer.aiter_raw(1 << 16):
                content += chunk
                if len(content) > self._max_bytes:
                    raise DependencyDown("The Alertmanager has more alerts than can be read.", code=CODE)
        return bytes(content)


def _is_address(url: str) -> bool:
    try:
        parts = httpx.URL(url)
        return parts.scheme in ("http", "https") and bool(parts.host) and (parts.port or 0) < 1 << 16
    except (httpx.InvalidURL, ValueError):
        return False


def _value(alert: _Alert) -> ActiveAlert:
    return ActiveAlert(
        name=alert.labels.get("alertname", ""),
        state=alert.status.state,
        starts_at=alert.startsAt,
        labels=alert.labels,
        annotations=alert.annotations,
        silenced=bool(alert.status.silencedBy),
        inhibited=bool(alert.status.inhibitedBy),
    )

"""The admin API of alerts: what an Alertmanager has as active, or why there is none."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from axon.adapters.alerts.alertmanager import Alertmanager
from axon.domain.tenants.key import Scope
from axon.errors import Misconfigured
from tests.gateway.admin.office import ok, opened_office, refused
from tests.services.alertmanager import AlertmanagerServer
from tests.services.require import require

URL = "/v1/admin/alerts"
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def _saying(content: bytes, status: str = "200 OK", headers: str = "") -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n{headers}\r\n".encode() + content)
        await writer.drain()

    return answer


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()  # until the client has had enough


@asynccontextmanager
async def _serving(answer: Answer) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def _asked(folder: Path, alerts: Alertmanager) -> AsyncIterator[httpx.AsyncClient]:
    async with opened_office(folder, alerts) as office, office.client(await office.key("ops", Scope.ADMIN)) as admin:
        yield admin


async def test_without_an_alertmanager_the_error_says_what_to_set(tmp_path: Path) -> None:
    async with opened_office(tmp_path) as office, office.client(await office.key("ops", Scope.ADMIN)) as admin:
        await refused(admin.get(URL), 404, "alerts_not_configured")
        assert "alerts.url" in (await admin.get(URL)).json()["error"]["message"]


async def test_alerts_need_the_scope_admin(tmp_path: Path) -> None:
    async with opened_office(tmp_path) as office, office.client(await office.key("ops")) as holder:
        await refused(holder.get(URL), 403, "insufficient_permissions")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (_silent, "does not answer"),
        (_saying(b"[]", "302 Found", "Location: http://127.0.0.1:1/\r\n"), "answers with 302"),
        (_saying(b"no", "500 Internal Server Error"), "answers with 500"),
        (_saying(b'{"status": "success"}'), "no list of alerts"),
        (_saying(b"[" * 5000), "no list of alerts"),
        (_saying(b'[{"labels": {"alertname": 3}}]'), "no list of alerts"),
        (_saying(b'[{"labels": {"alertname": "\xff"}}]'), "no list of alerts"),
        (_saying(b" " * 70_000 + b"[]"), "more alerts than can be read"),
    ],
    ids=["silent", "redirect", "500", "object", "deep", "number", "no UTF-8", "long"],
)
async def test_an_alertmanager_that_does_not_answer_well_is_a_503(tmp_path: Path, answer: Answer, said: str) -> None:
    async with _serving(answer) as url:
        alerts = Alertmanager(url, deadline_s=0.3 if answer is _silent else 60, max_bytes=65_536)
        async with _asked(tmp_path, alerts) as admin:
            reply = await admin.get(URL)
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "alerts_unavailable")
    assert said in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    "url",
    ["alertmanager:9093", "ftp://a", "http://", "file:///etc/passwd", "http://a:99999", "http://a:b", "http://[::1"],
)
def test_a_url_that_is_none_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(Misconfigured, match=r"alerts\.url"):
        Alertmanager(url)


async def test_the_active_alerts_of_a_real_alertmanager_are_listed(tmp_path: Path) -> None:
    require("prometheus-alertmanager")
    config = '{"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}'
    server = AlertmanagerServer(tmp_path / "alertmanager", config)
    server.start()
    try:
        server.add(
            {"labels": {"alertname": "AxonWalLag", "severity": "page"}, "annotations": {"summary": "it lags"}},
            {"labels": {"alertname": "AxonDeadLetters"}, "startsAt": "2020-01-01T00:00:00Z"},
        )
        async with _asked(tmp_path, Alertmanager(server.url)) as admin:
            shown = await ok(admin.get(URL))
    finally:
        server.stop()
    first, second = shown["data"]
    assert [each["name"] for each in (first, second)] == ["AxonDeadLetters", "AxonWalLag"]
    assert second["labels"] == {"alertname": "AxonWalLag", "severity": "page"}
    assert second["annotations"] == {"summary": "it lags"}
    assert second["state"] in ("active", "unprocessed")
    assert (first["starts_at"][:10], first["silenced"], first["inhibited"]) == ("2020-01-01", False, False)

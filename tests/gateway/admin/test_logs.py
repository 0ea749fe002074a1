"""The admin API of log lines: the last ones of the process that answers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from axon.domain.tenants.key import Scope
from tests.gateway.admin.office import Office, ok, opened_office, refused

URL = "/v1/admin/logs"


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with opened_office(tmp_path) as office:
        for number in range(150):
            office.lines.add("warning" if number % 10 == 0 else "info", json.dumps({"event": "x", "number": number}))
        yield office


async def test_the_last_lines_are_listed_oldest_first(office: Office) -> None:
    async with office.client(await office.key("ops", Scope.ADMIN)) as admin:
        shown = await ok(admin.get(URL))
        few = await ok(admin.get(URL, params={"limit": "3", "process": "gateway-1"}))
        warned = await ok(admin.get(URL, params={"limit": "1000", "level": "warning"}))
        none = await ok(admin.get(URL, params={"level": "error"}))
    assert (shown["object"], shown["process"], len(shown["data"])) == ("list", "gateway-1", 100)
    assert "of the process that answers, and of no other" in shown["note"]
    assert [line["number"] for line in few["data"]] == [147, 148, 149]
    assert [line["number"] for line in warned["data"]] == list(range(0, 150, 10))
    assert none["data"] == []


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"limit": "0"}, 400, "invalid_value"),
        ({"limit": "1001"}, 400, "invalid_value"),
        ({"limit": "x"}, 400, "invalid_value"),
        ({"level": "loud"}, 400, "invalid_value"),
        ({"process": "worker-1"}, 404, "process_not_here"),
    ],
    ids=str,
)
async def test_what_cannot_be_shown_is_refused(office: Office, query: dict[str, str], status: int, code: str) -> None:
    async with office.client(await office.key("ops", Scope.ADMIN)) as admin:
        await refused(admin.get(URL, params=query), status, code, next(iter(query)))


async def test_lines_need_the_scope_admin(office: Office) -> None:
    async with office.client(await office.key("ops")) as holder:
        await refused(holder.get(URL), 403, "insufficient_permissions")


async def test_looks_of_consoles_are_no_news(office: Office) -> None:
    async with office.client(await office.key("ops", Scope.ADMIN)) as admin:
        with capture_logs() as lines:
            await ok(admin.get(URL))
            await refused(admin.get(URL, params={"limit": "0"}), 400, "invalid_value", "limit")
    assert [(line["event"], line["log_level"], line["status"]) for line in lines] == [
        ("request.looked", "debug", 200),
        ("request.answered", "info", 400),
    ]

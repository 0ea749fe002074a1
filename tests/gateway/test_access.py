"""The route that proxies ask whether a key is good."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from axon.domain.tenants.key import Scope, new_key_text
from tests.gateway.admin.office import Office, opened_office

URL = "/v1/auth"


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with opened_office(tmp_path) as office:
        yield office


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
async def test_a_good_key_is_told_so_by_any_method(office: Office, method: str) -> None:
    async with office.client(await office.key("acme", Scope.READ)) as http:
        answer = await http.request(method, URL)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_key_that_nobody_has_is_refused(office: Office) -> None:
    async with office.client(new_key_text()[1]) as http:
        answer = await http.get(URL)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")

"""An office for each test, and a client of its administrator."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from axon.domain.tenants.key import Scope
from tests.gateway.admin.office import Office, opened_office


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    async with opened_office(tmp_path) as office:
        yield office


@pytest.fixture
async def admin(office: Office) -> AsyncIterator[httpx.AsyncClient]:
    async with office.client(await office.key("ops", Scope.ADMIN)) as client:
        yield client

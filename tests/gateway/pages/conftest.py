from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from axon.gateway.config import GatewayConfig
from tests.gateway.admin.office import Office, opened_office


@pytest.fixture
def config() -> GatewayConfig:
    """Limits that tests reach."""
    return GatewayConfig(max_key_web_sessions=3, failures_per_minute=5)


@pytest.fixture
async def office(tmp_path: Path, config: GatewayConfig) -> AsyncIterator[Office]:
    async with opened_office(tmp_path, config=config) as office:
        yield office

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sessions.world import Kept, open_kept


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    async with open_kept(tmp_path) as found:
        yield found

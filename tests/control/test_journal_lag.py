"""How far the store is behind the journal is shown."""

import asyncio

from axon.control.journal_lag import JournalLag
from axon.ports.journal import Pending


def test_what_is_pending_is_shown() -> None:
    shown: list[Pending] = []

    async def pending() -> Pending:
        return Pending(num_records=3, oldest_s=1.5, num_bytes=900)

    asyncio.run(JournalLag(pending, shown.append).look())
    assert shown == [Pending(num_records=3, oldest_s=1.5, num_bytes=900)]

"""One connection to PostgreSQL that is given up at once when its caller stops waiting. Knows no table."""

import asyncio
import contextlib
import select
from typing import Any

import psycopg
from psycopg import waiting
from psycopg.pq import TransactionStatus

_CANCEL_TIMEOUT_S = 0.1
"""How long a server may take to hear that a query is not wanted any more."""


class PostgresConnection(psycopg.AsyncConnection[Any]):
    """The driver's own would, on a cancel, wait up to ten seconds for a server that may be gone."""

    async def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                # A query that waits for a lock would otherwise keep its place on the server, one more at every try.
                with contextlib.suppress(psycopg.Error, OSError):
                    await self.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
                self.pgconn.finish()
            raise


def is_stale(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Whether an idle connection is dead: the server has nothing to say on it but that it is closed."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))

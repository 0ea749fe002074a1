"""A PostgreSQL connection that is closed at once when its caller is cancelled. Knows no table."""

import asyncio
import contextlib
import select
from typing import Any

import psycopg
from psycopg import waiting
from psycopg.pq import TransactionStatus

_CANCEL_TIMEOUT_S = 0.1
"""Seconds allowed for sending a cancel request to the server."""


class PostgresConnection(psycopg.AsyncConnection[Any]):
    """On cancellation psycopg would wait up to ten seconds for a server that may be gone; this class does not."""

    async def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                # Otherwise every retry would leave one more query waiting for a lock on the server.
                with contextlib.suppress(psycopg.Error, OSError):
                    await self.cancel_safe(timeout=_CANCEL_TIMEOUT_S)
                self.pgconn.finish()
            raise


def is_stale(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Whether an idle connection is dead: data on an idle socket can only be the server's close."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))

"""Reads a database's migration number. ``migrate`` changes it, and is slow to import."""

from sqlalchemy import inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine

from axon.adapters.store import schema


async def is_current(engine: AsyncEngine) -> bool:
    """Whether no migration is needed.

    Each migration leaves tables that the release before it can still use, so one step ahead is current as well:
    while a fleet is upgraded, an older process may restart.
    """
    return await _version(engine) in (schema.HEAD, f"{int(schema.HEAD) + 1:04d}")


async def _version(engine: AsyncEngine) -> str | None:
    """The database's migration; None for an empty database."""
    async with engine.connect() as connection:
        if not await connection.run_sync(lambda sync: inspect(sync).has_table("alembic_version")):
            return None
        version: str | None = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version

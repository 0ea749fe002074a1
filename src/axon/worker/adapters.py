"""Fetches the LoRA adapters that jobs name, beside the engine's work, and knows where their files are.

A job whose adapter is not here yet stays in the worker's hands and enters the engine when it is. Knows no engine.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from axon.domain.adapter import JobAdapter
from axon.errors import AxonError

Fetch = Callable[[JobAdapter], Awaitable[Path]]
"""Returns the folder of an adapter's files, fetched and compared with its digest; raises ``AxonError``."""

_logger = structlog.get_logger("axon.worker")


class AdapterFolders:
    """``folder`` for each job that is to enter the engine; ``run`` fetches what was asked for, one at a time."""

    def __init__(self, fetch: Fetch | None) -> None:
        """Without ``fetch`` no adapter is found."""
        self._fetch = fetch
        self._folders: dict[str, Path] = {}
        self._wanted: dict[str, JobAdapter] = {}
        self._news = asyncio.Event()
        self.on_fetched: Callable[[], None] = lambda: None
        """Called when an adapter's files are here."""
        self.on_failed: Callable[[str, str], None] = lambda digest, message: None
        """Called with the digest of an adapter that cannot be fetched, and why."""

    def folder(self, adapter: JobAdapter) -> Path | None:
        """The folder of an adapter's files; None while they are fetched, which begins with the first question."""
        if (found := self._folders.get(adapter.digest)) is not None:
            return found
        self._wanted.setdefault(adapter.digest, adapter)
        self._news.set()
        return None

    async def run(self) -> None:
        """Fetches adapters until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._wanted:
                digest, adapter = next(iter(self._wanted.items()))
                await self._get(digest, adapter)

    async def _get(self, digest: str, adapter: JobAdapter) -> None:
        try:
            if self._fetch is None:
                raise AxonError("This worker fetches no adapters.")
            self._folders[digest] = await self._fetch(adapter)
        except AxonError as error:
            # It is forgotten, so that the next job tries again.
            del self._wanted[digest]
            _logger.warning("adapter.not_fetched", model=adapter.name, error=str(error), next="its turns are failed")
            self.on_failed(digest, f"The files of the adapter '{adapter.name}' cannot be fetched; the log says why.")
            return
        del self._wanted[digest]
        self.on_fetched()

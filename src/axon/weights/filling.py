"""Fetches all files of a model into one folder, several at a time, with a manifest. Knows neither limit nor lock."""

import asyncio
from pathlib import Path

from axon.weights.config import WeightsConfig
from axon.weights.manifest import Entry, Manifest, write_manifest
from axon.weights.progress import Meter
from axon.weights.source import Source
from axon.weights.transfer import Reports, Transfer


class Filling:
    """Several transfers at once into one folder, and its manifest."""

    def __init__(
        self, source: Source, folder: Path, manifest: Manifest, config: WeightsConfig, meter: Meter, *, checkpoint: int
    ) -> None:
        self._source, self._folder, self._manifest = source, folder, manifest
        self._config, self._meter, self._checkpoint = config, meter, checkpoint
        self._slots = asyncio.Semaphore(config.parallel)

    async def run(self) -> Manifest:
        """Returns the whole manifest; the first error ends all transfers."""
        try:
            async with asyncio.TaskGroup() as group:
                # The largest first: the last one alone would use one connection.
                for entry in sorted(self._manifest.files, key=lambda entry: -entry.size):
                    group.create_task(self._transfer(entry))
        except BaseExceptionGroup as errors:
            raise _first(errors) from None
        return self._manifest

    async def _transfer(self, entry: Entry) -> None:
        async with self._slots:
            reports = Reports(note=self._note, moved=self._meter.add)
            await Transfer(
                self._source,
                entry,
                self._folder / entry.name,
                config=self._config,
                reports=reports,
                checkpoint=self._checkpoint,
            ).run()

    async def _note(self, entry: Entry) -> None:
        # On the event loop, so that two files' notes do not overtake each other; it takes a millisecond.
        self._manifest = self._manifest.with_entry(entry)
        write_manifest(self._folder, self._manifest)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first plain error of a group."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

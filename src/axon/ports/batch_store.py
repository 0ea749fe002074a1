"""Durable records of files and batches: two of the aggregates of a store."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from axon.domain.batch import Batch, Result
from axon.domain.file import File, Purpose


class FileRecords(Protocol):
    """Records of files; their bytes are in a ``FileStore``."""

    async def put(self, file: File) -> None:
        """Adds a file, or replaces the one with its id."""

    async def get(self, file_id: str) -> File | None: ...

    async def page(
        self, tenant: str, *, after: str, limit: int, newest_first: bool = True, purpose: Purpose | None = None
    ) -> Sequence[File]:
        """At most ``limit`` of the tenant's files past the id ``after``, in the order of their ids, which is that of
        their making; an empty ``after`` begins at the first."""

    async def remove(self, file_id: str) -> bool:
        """Removes a record; False when there is none."""

    async def expired(self, *, at: float, limit: int) -> Sequence[str]:
        """Ids of at most ``limit`` files whose time is over."""

    async def unknown(self, file_ids: Sequence[str]) -> frozenset[str]:
        """Those of the ids that have no record."""


class BatchStore(Protocol):
    """Batches, who runs each, and the results of their lines."""

    async def add(self, batch: Batch, *, max_active: int) -> bool:
        """Adds a batch; False, and nothing is added, if its tenant has ``max_active`` that have not ended. Calls at the
        same time are counted one after the other."""

    async def get(self, batch_id: str) -> Batch | None: ...

    async def page(self, tenant: str, *, after: str, limit: int) -> Sequence[Batch]:
        """At most ``limit`` of the tenant's batches past the id ``after``, the newest first."""

    async def change(self, old: Batch, new: Batch, *, files: Sequence[File] = ()) -> bool:
        """Compare-and-set by the revision; False when the batch has changed meanwhile or is gone. The records of
        ``files`` are added in the same transaction, or not at all."""

    async def active(self, tenant: str) -> int:
        """Number of the tenant's batches that have not ended."""

    async def users(self, file_id: str) -> Sequence[str]:
        """Ids of the batches that have not ended and read this file."""

    async def take(self, holder: str, *, now: float, until: float, limit: int) -> Sequence[Batch]:
        """Gives ``holder`` a lease until then on at most ``limit`` batches that have not ended and that nobody holds:
        those of the tenants with the fewest held batches first, and of each tenant the oldest first."""

    async def keep(self, batch_id: str, holder: str, *, until: float) -> Batch | None:
        """Renews a lease and returns the batch as it is; None when somebody else holds it by now."""

    async def release(self, batch_id: str, holder: str, *, until: float = 0.0) -> None:
        """Gives a lease up. Nobody takes the batch before ``until``, a Unix time."""

    async def put_results(self, batch_id: str, results: Sequence[Result]) -> None:
        """Adds results; a line that has one keeps it."""

    async def done(self, batch_id: str) -> Mapping[int, bool]:
        """Whether the result of each line that has one is good, by line."""

    async def results(self, batch_id: str, *, after: int, limit: int, max_bytes: int) -> Sequence[Result]:
        """At most ``limit`` results of the lines past ``after``, in order, and at most ``max_bytes`` of them; but
        always one if there is one."""

    async def count(self, batch_id: str) -> tuple[int, int]:
        """Number of good and of other results."""

    async def purge(self, *, created_before: float) -> int:
        """Deletes ended batches that were made before then, and the results of all that have ended. Returns how many
        batches."""

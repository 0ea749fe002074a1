"""The bytes of files, by id. Knows no tenant and no meaning: the records are in the store."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Protocol


class FileStore(Protocol):
    """Whole files, each written once in one piece after the other, and visible only when it is complete."""

    async def put(self, file_id: str, pieces: AsyncIterator[bytes]) -> int:
        """Writes a file and returns its number of bytes; one with this id is replaced. When it returns, the file
        survives a crash. If ``pieces`` raises, nothing is left."""

    def read(self, file_id: str) -> AsyncGenerator[bytes, None]:
        """The file's bytes in pieces of bounded size; raises ``NotFound`` if there is none. Whoever stops before the
        end closes it."""

    async def delete(self, file_id: str) -> None:
        """Deletes a file; one that is not there is no error."""

    async def old(self, *, before: float, limit: int, after: str = "") -> Sequence[str]:
        """Ids of the first ``limit`` files past the id ``after``, in the order of their ids, that were written before
        this Unix time. Removes what writes that were cut off before then have left."""

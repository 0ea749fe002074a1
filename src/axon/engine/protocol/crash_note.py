"""Which sequences the step is about, written down before it runs, where it outlives the engine. Knows no socket.

A file without a name that the worker and its engine both have open: a write costs a microsecond and wakes nobody, and
when the engine dies or hangs, the worker reads who was in the step.
"""

import os
import tempfile
from collections.abc import Sequence

import msgspec

_PREFIX_BYTES = 4
_LARGEST_BYTES = 1 << 20
_DECODER = msgspec.msgpack.Decoder(list[str])


def new_note() -> int:
    """The descriptor of an empty note; its opener closes it."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("axon-step")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Note:
    """A note by its descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._written: list[str] = []

    def write(self, ids: Sequence[str]) -> None:
        """These are in the step that comes next."""
        if list(ids) != self._written:
            self._written = list(ids)
            body = msgspec.msgpack.encode(self._written)
            os.pwrite(self._fd, len(body).to_bytes(_PREFIX_BYTES, "big") + body, 0)

    def read(self) -> frozenset[str]:
        """Who is in the step; empty before the first one, and where a death has torn the note."""
        data = os.pread(self._fd, _LARGEST_BYTES, 0)
        length = int.from_bytes(data[:_PREFIX_BYTES], "big")
        try:
            return frozenset(_DECODER.decode(data[_PREFIX_BYTES : _PREFIX_BYTES + length]))
        except msgspec.MsgspecError:
            return frozenset()

"""The crash note: the sequences of the step that runs, written where it outlives the engine. Knows no socket.

The note is an anonymous file (memfd) that the worker and its engine both have open. A write costs a microsecond and
wakes nobody; when the engine crashes or hangs, the worker reads which sequences were in the step.
"""

import os
import tempfile
from collections.abc import Sequence

import msgspec

_PREFIX_BYTES = 4
_LARGEST_BYTES = 1 << 20
_DECODER = msgspec.msgpack.Decoder(list[str])


def new_crash_note() -> int:
    """The file descriptor of an empty note; the caller closes it."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("axon-step")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class CrashNote:
    """The crash note behind a file descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._written: list[str] = []

    def write(self, ids: Sequence[str]) -> None:
        """Writes the ids of the sequences in the next step."""
        if list(ids) != self._written:
            self._written = list(ids)
            body = msgspec.msgpack.encode(self._written)
            os.pwrite(self._fd, len(body).to_bytes(_PREFIX_BYTES, "big") + body, 0)

    def read(self) -> frozenset[str]:
        """The ids that were written last; empty before the first step, and if a crash tore the note."""
        data = os.pread(self._fd, _LARGEST_BYTES, 0)
        length = int.from_bytes(data[:_PREFIX_BYTES], "big")
        try:
            return frozenset(_DECODER.decode(data[_PREFIX_BYTES : _PREFIX_BYTES + length]))
        except msgspec.MsgspecError:
            return frozenset()

"""Addresses of Unix sockets in folders whose path is longer than an address may be."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MAX_BYTES = 100
"""A Unix socket's address has at most 107 bytes."""


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """An address by which the socket at ``path`` can be bound or connected to inside the block."""
    if len(os.fsencode(path)) <= _MAX_BYTES:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)

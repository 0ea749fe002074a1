"""Makes what was written survive a power failure. Writes nothing itself."""

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Syncs a file's bytes, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

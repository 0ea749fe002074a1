"""A disk of a few megabytes, to be filled. Needs root: it is a file system of its own."""

import os
import subprocess
from pathlib import Path

from tests.services.process import private_folder

_BLOCK = bytes(1 << 16)


class SmallDisk:
    """A folder with so many bytes in all."""

    def __init__(self, folder: Path, *, num_bytes: int) -> None:
        self.folder = folder
        self._num_bytes = num_bytes

    @property
    def free_bytes(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def mount(self) -> None:
        private_folder(self.folder)
        options = f"size={self._num_bytes},mode=777"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)], check=True)

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.folder)], check=False, capture_output=True)

    def fill(self) -> None:
        """Returns when not another byte fits."""
        with (self.folder / "filler").open("ab", buffering=0) as filler:
            try:
                while True:
                    filler.write(_BLOCK)
            except OSError:
                pass

    def empty(self) -> None:
        (self.folder / "filler").unlink(missing_ok=True)


def can_mount() -> bool:
    """Whether this user may have a disk of its own."""
    return os.geteuid() == 0

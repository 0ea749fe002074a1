"""A file that holds the URL of a service, which has its password. Knows no scheme."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from axon.errors import Misconfigured

_MOST_BYTES = 16 << 10
"""The longest URL that is read."""
_SERVICES = {"queue": "the queue", "live": "the live service", "store": "the store"}
"""By setting: what its service is called in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlFile:
    """The file that the setting ``{setting}_file`` names."""

    setting: str
    """``queue``, ``live`` or ``store``."""
    path: Path

    def read(self) -> str:
        """The URL; raises ``Misconfigured``, which quotes nothing of the file. Reads regular files alone, never more
        than a URL has, and waits for nobody."""
        try:
            return _url_in(_bytes_of(self.path))
        except OSError as error:
            raise Misconfigured(self.refusal(f"it cannot be read ({error.strerror})")) from error
        except ValueError as error:
            raise Misconfigured(self.refusal(str(error))) from None

    def refusal(self, reason: str) -> str:
        """The sentences that say why the file cannot be used, and what to do."""
        return (
            f"{self.setting}_file is {self.path}, which cannot be used: {reason}. Write the URL of "
            f"{_SERVICES[self.setting]} into it, or check its rights."
        )


def _bytes_of(path: Path) -> bytes:
    """The file's bytes, at most one more than a URL may have."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # else a pipe would wait for its writer
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise ValueError("it is no regular file")
        with open(opened, "rb", closefd=False) as file:
            return file.read(_MOST_BYTES + 1)
    finally:
        os.close(opened)


def _url_in(data: bytes) -> str:
    if len(data) > _MOST_BYTES:
        raise ValueError(f"it is longer than {_MOST_BYTES:,} bytes")
    try:
        url = data.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError("it is not text") from None
    if not url:
        raise ValueError("it is empty")
    if not url.isprintable():
        raise ValueError("it is not one line of text")
    return url

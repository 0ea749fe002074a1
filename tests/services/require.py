"""Whether the servers a test needs are installed. Installs nothing itself; says who does."""

import os
import shutil
from pathlib import Path

import pytest

_FOLDERS = ("/usr/sbin", "/usr/local/sbin", "/usr/lib/rabbitmq/bin")
"""Where servers live that are on nobody's path."""


def find(command: str) -> str | None:
    """The command's file; of several PostgreSQL releases the newest."""
    releases = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_release, reverse=True)
    folders = [os.environ.get("PATH", ""), *_FOLDERS, *map(str, releases)]
    return shutil.which(command, path=os.pathsep.join(folders))


def require(*commands: str) -> None:
    """Skips the test where one is missing; with REQUIRE_SERVERS=1 that is a failure."""
    missing = [command for command in commands if find(command) is None]
    if not missing:
        return
    reason = f"not installed: {', '.join(missing)}; run `make install-services`"
    if os.environ.get("REQUIRE_SERVERS") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _release(folder: Path) -> float:
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0

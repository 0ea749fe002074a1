"""A store far larger than the memory that a backup may take."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.backup.conftest import MakePlace
from tests.console.program import Axon
from tests.long import share

_PEAK = (
    "import resource, sys\n"
    "from axon.cli import main\n"
    "try: main(sys.argv[1:])\n"
    "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
)


@pytest.mark.long
@pytest.mark.parametrize("num_turns", [int(share(30_000))])
def test_memory_does_not_grow_with_the_store(
    kind: str, make_place: MakePlace, axon: Axon, tmp_path: Path, num_turns: int
) -> None:
    """16 kB a turn: the whole of it is 48 MB in a short run, and 480 MB in a long one."""
    small, large, target = (make_place(kind, name) for name in ("small", "large", "target"))
    small.fill(num_turns=10)
    large.fill(num_turns=num_turns, num_bytes=16_000)
    peaks = {}
    for name, place in (("small", small), ("large", large)):
        path = tmp_path / f"{name}.backup"
        peaks[name, "create"] = _peak(axon, place.environ, "create", str(path))
    backup = tmp_path / "large.backup"
    peaks["large", "restore"] = _peak(axon, target.environ, "restore", str(backup))
    assert target.contents()["turns"][0] == num_turns + 1
    allowed = peaks["small", "create"] + 60_000  # kB: a few parts of 4 MB, and what SQLite or the driver buffers
    assert max(peaks.values()) < allowed, peaks


def _peak(axon: Axon, environ: dict[str, str], *arguments: str) -> int:
    """Peak of the resident memory of one command, in kB."""
    command = [sys.executable, "-c", _PEAK, "backup", *arguments]
    ran = subprocess.run(command, env=axon._environ(environ), capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    return int(ran.stderr.split()[-1])

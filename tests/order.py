"""The order that tests run in: the longest files first, by ``durations``, the rest shuffled by a seed that is printed.

``TEST_SEED=7`` repeats a run's order, ``TEST_SEED=commit`` (that of ``make test``) is another with each commit and the
same whoever tests it, ``TEST_SEED=random`` is another each time, and without it tests stand as they are written. A
file's tests stay together: they share servers. A long file that was begun last would keep one core busy while the other
has nothing to do.
"""

import random
import subprocess
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tests import durations

T = TypeVar("T")


def chosen_seed(environ: Mapping[str, str]) -> int | None:
    """What the run is asked for; None for the order as it is written."""
    asked = environ.get("TEST_SEED", "")
    if asked == "commit":
        return _commit_seed()
    if asked == "random":
        return random.SystemRandom().randrange(1, 1 << 32)
    return int(asked) if asked else None


def _commit_seed() -> int:
    """A seed from the name of the last commit; 1 where there is none, as in an unpacked archive."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
    return int(said.stdout.strip()[:8], 16) if said.returncode == 0 else 1


def ordered(tests: Sequence[tuple[str, T]], seed: int | None) -> list[T]:
    """The tests, each given with its file: by files, the longest ones first; with a seed shuffled, but for those."""
    by_file: dict[str, list[T]] = {}
    for file, test in tests:
        by_file.setdefault(file, []).append(test)
    files = list(by_file)
    if seed is not None:
        random.Random(seed).shuffle(files)
        for file in files:
            # By the file too, so that it runs in the same order when it runs alone.
            random.Random(seed ^ zlib.crc32(file.encode())).shuffle(by_file[file])
    return [test for file in _longest_first(files) for test in by_file[file]]


def _longest_first(files: Iterable[str]) -> list[str]:
    seconds = durations.known()
    return sorted(files, key=lambda file: -seconds.get(file.removeprefix("tests/"), 0.0))

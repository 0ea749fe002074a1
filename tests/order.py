"""The order that tests run in: the longest files first, the rest shuffled by a seed that the run prints.

``TEST_SEED=7`` repeats a run's order, ``TEST_SEED=random`` chooses another one, and without it tests stand as they are
written. A file's tests stay together: they share servers.
"""

import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

LONGEST = (
    "test_faults.py",
    "test_roles.py",
    "test_default_model.py",
    "test_rollout_scene.py",
    "test_suites.py",
    "test_fuzz.py",
    "test_simulation.py",
    "test_failover.py",
    "test_real_model.py",
    "test_rabbitmq_queue.py",
    "test_programs.py",
    "test_pinned.py",
    "test_many_models.py",
    "test_command.py",
    "test_rolling.py",
    "test_floods.py",
    "test_smoke.py",
    "test_tokens.py",
)
"""By name, wherever they are. One that was begun last would keep one core busy while the other has nothing to do."""


def chosen_seed(environ: Mapping[str, str]) -> int | None:
    """What the run is asked for; None for the order as it is written."""
    asked = environ.get("TEST_SEED", "")
    if asked == "random":
        return random.SystemRandom().randrange(1, 1 << 32)
    return int(asked) if asked else None


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
    rank = {name: number for number, name in enumerate(LONGEST)}
    return sorted(files, key=lambda file: rank.get(file.rpartition("/")[2], len(LONGEST)))

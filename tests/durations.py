"""How long each test file takes in a whole run, as the last one that was saved found. Knows no order.

``make test TEST_DURATIONS=save`` writes ``durations.toml`` again: the files that it ran, and of those that it did not
run the old values. Files of less than ``LEAST_S`` have no line, and so no fixed place: a core that waits for one at the
end waits for as long at most.
"""

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

LEAST_S = 8.0
_TABLE = Path(__file__).with_name("durations.toml")
_HEAD = "# Seconds of each test file in a whole run; `make test TEST_DURATIONS=save` writes it.\n\n"


def known() -> dict[str, float]:
    """Seconds by file, which is named below ``tests``."""
    return {name: float(seconds) for name, seconds in tomllib.loads(_TABLE.read_text()).items()}


def summed(tests: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Seconds by file, of tests that are given by their ids with what they took."""
    found: dict[str, float] = {}
    for test, seconds in tests:
        file = test.partition("::")[0].removeprefix("tests/")
        found[file] = found.get(file, 0.0) + seconds
    return found


def merged(old: Mapping[str, float], new: Mapping[str, float], there: Iterable[str]) -> dict[str, float]:
    """The table after a run: of files that are still there, and long enough."""
    found = {**old, **new}
    return {name: found[name] for name in there if found.get(name, 0.0) >= LEAST_S}


def is_saved() -> bool:
    """Whether this run is to write the table."""
    return os.environ.get("TEST_DURATIONS") == "save"


def save(tests: Iterable[tuple[str, float]], table: Path = _TABLE) -> None:
    """Writes what a run took, the longest file first."""
    folder = Path(__file__).parent
    there = [path.relative_to(folder).as_posix() for path in folder.rglob("test_*.py")]
    found = merged(known(), summed(tests), there)
    lines = [f'"{name}" = {found[name]:.0f}\n' for name in sorted(found, key=lambda name: (-found[name], name))]
    table.write_text(_HEAD + "".join(lines))

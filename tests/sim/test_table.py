"""The table of broken rules in docs/reliability.md names every mutant, and the test that finds it."""

import re
from pathlib import Path

from tests.sim import mutants, test_launching, test_registering

_PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
_ROW = re.compile(r"^\|[^|]*\|([^|]*)\| `(test_\w+\.py)` \|$", re.MULTILINE)


def test_the_table_has_every_mutant_beside_the_simulation_that_finds_it() -> None:
    listed = {
        (name, where) for names, where in _ROW.findall(_PAGE.read_text()) for name in re.findall(r"`(\w+)`", names)
    }
    found = {
        "test_simulation.py": mutants.MUTANTS,
        "test_launching.py": test_launching.MUTANTS,
        "test_registering.py": test_registering.MUTANTS,
    }
    assert listed == {(name, where) for where, names in found.items() for name in names}

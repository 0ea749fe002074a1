"""The machine's ceilings, as the step's benchmark prints them first."""

import shutil

import pytest

from benchmarks import ceilings


@pytest.mark.skipif(shutil.which("g++") is None, reason="no compiler here")
def test_every_machine_reads_memory_and_multiplies_by_what_it_has() -> None:
    found = ceilings.measure(threads=1)
    assert found.memory_gb_s > 0
    assert all(rate > 0 for rate in found.int8_gmac_s.values())
    assert str(found).startswith("ceilings of 1 threads: memory ")

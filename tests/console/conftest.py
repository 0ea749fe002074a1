"""The program, as a person at a shell has it."""

from pathlib import Path

import pytest

from tests.console.program import Axon


@pytest.fixture
def axon(tmp_path: Path) -> Axon:
    return Axon(tmp_path)

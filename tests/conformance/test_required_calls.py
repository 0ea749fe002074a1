"""Programs of other people's clients that require calls and schemas, which any model answers: here the default one."""

from pathlib import Path

import pytest

from tests.conformance.clients import PROGRAMS
from tests.conformance.running import cases, runs
from tests.journeys.server import Server

CALLS = sorted(path.name for path in PROGRAMS.glob("*_calls.py"))


@pytest.mark.model
@pytest.mark.long("required calls")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("program", "client"), cases(CALLS))
def test_the_default_model_makes_the_calls_that_are_required(
    real: Server, tmp_path: Path, program: str, client: str
) -> None:
    assert runs(real, tmp_path, program, client=client)

"""Programs written for other people's clients, unmodified, against the running server."""

from pathlib import Path

import pytest

from tests.conformance.clients import PROGRAMS, run
from tests.journeys.server import Server


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("program", sorted(path.name for path in PROGRAMS.glob("*.py")))
def test_it_runs_as_it_does_against_openai(echo: Server, tmp_path: Path, program: str) -> None:
    """The program's name begins with its client's."""
    settings = {"BASE_URL": f"{echo.url}/v1", "API_KEY": echo.key}
    command = ["python", str(PROGRAMS / program)]
    assert run(program.partition("_")[0], command, cwd=tmp_path, settings=settings).strip().endswith("ok")

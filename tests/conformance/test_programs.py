"""Programs written for other people's clients, unmodified, against the running server."""

from pathlib import Path

import pytest

from tests.conformance.clients import PROGRAMS, run
from tests.journeys.server import Server

ALL = sorted(path.name for path in PROGRAMS.glob("*.py"))
LOADS = ("aiperf_runs.py", "guidellm_runs.py")
"""Load generators, which take a minute each."""


def runs(server: Server, program: str, folder: Path) -> bool:
    """Whether the program ends well. Its name begins with its client's."""
    settings = {"BASE_URL": f"{server.url}/v1", "API_KEY": server.key}
    command = ["python", str(PROGRAMS / program)]
    return run(program.partition("_")[0], command, cwd=folder, settings=settings).strip().endswith("ok")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("program", [name for name in ALL if name not in LOADS])
def test_it_runs_as_it_does_against_openai(echo: Server, tmp_path: Path, program: str) -> None:
    assert runs(echo, program, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("program", LOADS)
def test_a_load_generator_runs_as_it_does_against_openai(echo: Server, tmp_path: Path, program: str) -> None:
    assert runs(echo, program, tmp_path)

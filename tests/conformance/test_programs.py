"""Programs written for other people's clients, unmodified, against the running server."""

from pathlib import Path

import pytest

from tests.conformance.clients import PROGRAMS
from tests.conformance.running import cases, runs
from tests.journeys.server import Server

LOADS = {"aiperf_runs.py": ("chat", "completions", "responses"), "guidellm_runs.py": ("completions", "chat", "kept")}
"""Load generators, and what each measures, which takes a quarter of a minute."""
LOAD_CASES = [(program, kind) for program, kinds in LOADS.items() for kind in kinds]
TOOLS = sorted(path.name for path in PROGRAMS.glob("*_tools.py"))
AGENTS = [*(pytest.param(each, marks=pytest.mark.long("agents")) for each in TOOLS), "openresponses_cases.py"]
"""Programs that offer tools, and need a model that calls them. The cases of Open Responses are run always."""
CHATS = sorted(path.name for path in PROGRAMS.glob("*_chat.py"))


@pytest.mark.long("chats")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("program", "client"), cases(CHATS))
def test_it_runs_as_it_does_against_its_own_server(echo: Server, tmp_path: Path, program: str, client: str) -> None:
    assert runs(echo, tmp_path, program, client=client)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("program", AGENTS)
def test_an_agent_runs_as_it_does_against_openai(agent: Server, tmp_path: Path, program: str) -> None:
    assert runs(agent, tmp_path, program)


@pytest.mark.long("programs")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("program", "kind"), LOAD_CASES)
def test_a_load_generator_runs_as_it_does_against_openai(echo: Server, tmp_path: Path, program: str, kind: str) -> None:
    assert runs(echo, tmp_path, program, kind)

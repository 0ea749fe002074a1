"""Programs written for other people's clients, unmodified, against the running server."""

from pathlib import Path

import pytest

from tests.conformance.clients import PROGRAMS, run
from tests.journeys.server import Server

LOADS = {"aiperf_runs.py": ("chat", "completions", "responses"), "guidellm_runs.py": ("completions", "chat", "kept")}
"""Load generators, and what each measures, which takes a quarter of a minute."""
LOAD_CASES = [(program, kind) for program, kinds in LOADS.items() for kind in kinds]
AGENTS = sorted(path.name for path in PROGRAMS.glob("*_tools.py") if not path.name.startswith("anthropic"))
"""Programs that offer tools, and need a model that calls them."""
OLDER = {"anthropic_chat.py": ("anthropic0",)}
"""Programs that run with an older release of their client too."""
CHATS = sorted(path.name for path in PROGRAMS.glob("*.py") if path.name not in (*LOADS, *AGENTS))
CHAT_CASES = [(each, name) for each in CHATS for name in (each.partition("_")[0], *OLDER.get(each, ()))]


def runs(server: Server, folder: Path, program: str, *arguments: str, client: str = "") -> bool:
    """Whether the program ends well. Its name begins with its client's, unless that is given."""
    settings = {"BASE_URL": f"{server.url}/v1", "API_KEY": server.key}
    command = ["python", str(PROGRAMS / program), *arguments]
    return run(client or program.partition("_")[0], command, cwd=folder, settings=settings).strip().endswith("ok")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("program", "client"), CHAT_CASES)
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

"""Programs written for other people's clients, unmodified, against the running server."""

from pathlib import Path

import pytest

from tests.conformance.clients import PROGRAMS, run
from tests.journeys.server import Server

MODEL = "smollm2-135m-instruct"
LOADS = {"aiperf_runs.py": ("chat", "completions", "responses"), "guidellm_runs.py": ("completions", "chat", "kept")}
"""Load generators, and what each measures, which takes a quarter of a minute."""
LOAD_CASES = [(program, kind) for program, kinds in LOADS.items() for kind in kinds]
TOOLS = sorted(path.name for path in PROGRAMS.glob("*_tools.py"))
AGENTS = [*TOOLS, "openresponses_cases.py"]
"""Programs that offer tools, and need a model that calls them."""
CALLS = sorted(path.name for path in PROGRAMS.glob("*_calls.py"))
"""Programs that require calls and schemas, which any model answers."""
OLDER = {"anthropic_chat.py": ("anthropic0",), "anthropic_calls.py": ("anthropic0",)}
"""Programs that run with an older release of their client too."""
CHATS = sorted(path.name for path in PROGRAMS.glob("*_chat.py"))


def cases(programs: list[str]) -> list[tuple[str, str]]:
    """Each program with each release of its client."""
    return [(each, name) for each in programs for name in (each.partition("_")[0], *OLDER.get(each, ()))]


def runs(server: Server, folder: Path, program: str, *arguments: str, client: str = "") -> bool:
    """Whether the program ends well. Its name begins with its client's, unless that is given."""
    settings = {"BASE_URL": f"{server.url}/v1", "API_KEY": server.key, "MODEL": MODEL}
    command = ["python", str(PROGRAMS / program), *arguments]
    return run(client or program.partition("_")[0], command, cwd=folder, settings=settings).strip().endswith("ok")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("program", "client"), cases(CHATS))
def test_it_runs_as_it_does_against_its_own_server(echo: Server, tmp_path: Path, program: str, client: str) -> None:
    assert runs(echo, tmp_path, program, client=client)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("program", AGENTS)
def test_an_agent_runs_as_it_does_against_openai(agent: Server, tmp_path: Path, program: str) -> None:
    assert runs(agent, tmp_path, program)


@pytest.mark.model
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("program", "client"), cases(CALLS))
def test_a_real_model_makes_the_calls_that_are_required(
    real: Server, tmp_path: Path, program: str, client: str
) -> None:
    assert runs(real, tmp_path, program, client=client)


@pytest.mark.long("programs")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("program", "kind"), LOAD_CASES)
def test_a_load_generator_runs_as_it_does_against_openai(echo: Server, tmp_path: Path, program: str, kind: str) -> None:
    assert runs(echo, tmp_path, program, kind)

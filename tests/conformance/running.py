"""Runs the programs that are written for other people's clients. Knows no server's start and no assertion of theirs."""

from pathlib import Path

from tests.conformance.clients import PROGRAMS, run
from tests.journeys.server import Server

MODEL = "smollm2-135m-instruct"
"""The model of a server that has a real one."""
_OLDER = {"anthropic_chat.py": ("anthropic0",), "anthropic_calls.py": ("anthropic0",)}
"""Programs that run with an older release of their client too."""


def cases(programs: list[str]) -> list[tuple[str, str]]:
    """Each program with each release of its client."""
    return [(each, name) for each in programs for name in (each.partition("_")[0], *_OLDER.get(each, ()))]


def runs(server: Server, folder: Path, program: str, *arguments: str, client: str = "") -> bool:
    """Whether the program ends well. Its name begins with its client's, unless that is given."""
    settings = {"BASE_URL": f"{server.url}/v1", "API_KEY": server.key, "MODEL": MODEL}
    command = ["python", str(PROGRAMS / program), *arguments]
    return run(client or program.partition("_")[0], command, cwd=folder, settings=settings).strip().endswith("ok")

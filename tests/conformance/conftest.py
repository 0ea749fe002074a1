"""One server that repeats its prompts, for all clients; a few of them it answers by a script, with tool calls."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.agents import scripted
from tests.journeys.conftest import PATIENT, Settings, place, real
from tests.journeys.server import Server, running

__all__ = ["place", "real"]
SCRIPT = Path(__file__).with_name("script.json")


@pytest.fixture(scope="module")
def echo(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"engine_kind": "echo", "engine_echo_script": SCRIPT, **PATIENT, **place()}
    with running(tmp_path_factory.mktemp("conformance") / "data", **settings) as server:
        yield server


@pytest.fixture(scope="module")
def agent(place: Callable[[], Settings], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose engine calls tools by a script."""
    with scripted(tmp_path_factory.mktemp("agent"), **PATIENT, **place()) as server:
        yield server

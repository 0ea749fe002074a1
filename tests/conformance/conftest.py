"""One server that repeats its prompts, for all clients."""

from collections.abc import Iterator

import pytest

from tests.conformance.agents import scripted
from tests.journeys.server import Server, running


@pytest.fixture(scope="session")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("conformance") / "data", engine_kind="echo") as server:
        yield server


@pytest.fixture(scope="session")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose engine calls tools by a script."""
    with scripted(tmp_path_factory.mktemp("agent")) as server:
        yield server

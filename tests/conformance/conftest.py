"""One server that repeats its prompts, for all clients."""

from collections.abc import Iterator

import pytest

from tests.journeys.server import Server, running


@pytest.fixture(scope="session")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running(tmp_path_factory.mktemp("conformance") / "data", engine_kind="echo") as server:
        yield server

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.server import Server, running


@pytest.fixture(scope="session")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that repeats its prompts, shared by the journeys that leave it as it was."""
    with running(tmp_path_factory.mktemp("echo") / "data", engine_kind="echo") as server:
        yield server


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the default model."""
    with running(tmp_path_factory.mktemp("real") / "data") as server:
        yield server


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator["Fresh"]:
    """Servers of the test's own, to be broken at will."""
    with contextlib.ExitStack() as stack:
        yield Fresh(tmp_path / "data", stack)


class Fresh:
    def __init__(self, data_dir: Path, stack: contextlib.ExitStack) -> None:
        self._data_dir, self._stack = data_dir, stack

    def start(self, **settings: object) -> Server:
        """Another server on the same data folder, whatever became of the one before."""
        return self._stack.enter_context(running(self._data_dir, **{"engine_kind": "echo", **settings}))

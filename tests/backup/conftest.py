"""Stores on both databases, and the program beside them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.backup.places import Place, postgres_place, sqlite_place
from tests.console.program import Axon

_PLACES = {"sqlite": sqlite_place, "postgres": postgres_place}
BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.services)]

MakePlace = Callable[..., Place]


@pytest.fixture(params=BOTH)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make_place(tmp_path: Path) -> Iterator[MakePlace]:
    """Makes an empty place of a kind, with a data folder of this name."""
    with ExitStack() as stack:

        def make(kind: str, name: str) -> Place:
            folder = tmp_path / name
            folder.mkdir()
            opened: AbstractContextManager[Place] = _PLACES[kind](folder)
            return stack.enter_context(opened)

        yield make


@pytest.fixture
def place(kind: str, make_place: MakePlace) -> Place:
    """A filled store, with a pepper."""
    made = make_place(kind, "first")
    made.fill()
    (made.data_dir / "pepper").write_text("of the first\n")
    return made


@pytest.fixture
def other(kind: str, make_place: MakePlace) -> Place:
    """A place on the same kind of database where nothing is."""
    return make_place(kind, "second")


@pytest.fixture
def axon(tmp_path: Path) -> Axon:
    return Axon(tmp_path)

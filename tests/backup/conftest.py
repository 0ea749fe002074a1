"""Stores on both databases, and the program beside them."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.backup.places import Place, postgres_place, sqlite_place
from tests.console.program import Axon
from tests.contracts.postgres_backend import shared_server
from tests.services.require import require

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


@pytest.fixture(scope="session")
def filled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a filled SQLite store, to be copied: making one takes as long as most tests."""
    folder = tmp_path_factory.mktemp("filled")
    with sqlite_place(folder) as made:
        made.fill()
    return folder


@pytest.fixture(scope="session")
def filled_database(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A filled database to be copied, by its name, and the data folder beside it."""
    require("postgres", "initdb")
    folder, url = tmp_path_factory.mktemp("filled"), shared_server().create_database()
    Place(url=url, data_dir=folder).fill()
    return url.rsplit("/", 1)[1], folder


@pytest.fixture
def place(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A filled store, with a pepper."""
    folder = tmp_path / "first"
    if kind == "sqlite":
        shutil.copytree(request.getfixturevalue("filled_file"), folder)
        url = f"sqlite:///{folder / 'axon.db'}"
    else:
        template, source = request.getfixturevalue("filled_database")
        shutil.copytree(source, folder)
        url = shared_server().create_database(template)
    (folder / "pepper").write_text("of the first\n")
    yield Place(url=url, data_dir=folder)
    if kind == "postgres":
        shared_server().drop_database(url)


@pytest.fixture
def other(kind: str, make_place: MakePlace) -> Place:
    """A place on the same kind of database where nothing is."""
    return make_place(kind, "second")


@pytest.fixture
def axon(tmp_path: Path) -> Axon:
    return Axon(tmp_path)

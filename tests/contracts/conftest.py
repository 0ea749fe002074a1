"""The suites' backends as fixtures, and a check that a test leaves no task behind."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from axon.ports.live import Live
from axon.ports.queue import Lanes
from axon.ports.store import Store
from tests.contracts import backends, tls_choice


@pytest.hookimpl(tryfirst=True)  # before a short run leaves out what is long
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is not chosen to run over TLS each time is of a corpus."""
    for item in items:
        if tls_choice.is_left(item.nodeid):
            item.add_marker(pytest.mark.long("tls"))


@pytest.fixture(autouse=True)
async def no_task_is_left() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    here = asyncio.current_task()
    assert not {task for task in asyncio.all_tasks() - before if task is not here}


@pytest.fixture(params=backends.rows(backends.QUEUES))
async def queues(
    request: pytest.FixtureRequest, tmp_path: Path, no_task_is_left: None
) -> AsyncIterator[backends.QueueBackend]:
    async with request.param(tmp_path) as backend:
        yield backend


@pytest.fixture
async def queue(queues: backends.QueueBackend) -> Lanes:
    return await queues.connect()


@pytest.fixture(params=backends.rows(backends.LIVES))
async def lives(
    request: pytest.FixtureRequest, tmp_path: Path, no_task_is_left: None
) -> AsyncIterator[backends.LiveBackend]:
    async with request.param(tmp_path) as backend:
        yield backend


@pytest.fixture
def live(lives: backends.LiveBackend) -> Live:
    return lives.live


@pytest.fixture(params=backends.rows(backends.STORES))
async def stores(
    request: pytest.FixtureRequest, tmp_path: Path, no_task_is_left: None
) -> AsyncIterator[backends.StoreBackend]:
    async with request.param(tmp_path) as backend:
        yield backend


@pytest.fixture
async def store(stores: backends.StoreBackend) -> Store:
    return await stores.connect()

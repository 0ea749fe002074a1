"""The journal's contract: what it has taken is durable and, behind a barrier, in the store."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from axon.domain.turn import opened
from axon.errors import DependencyDown
from axon.ports.journal import Journal
from axon.ports.store import Store
from tests.contracts.backends import JOURNALED, StoreBackend, rows
from tests.contracts.builders import make_ended, make_job


@pytest.fixture(params=rows(JOURNALED))
async def stores(request: pytest.FixtureRequest, tmp_path: Path, no_task_is_left: None) -> AsyncIterator[StoreBackend]:
    async with request.param(tmp_path) as backend:
        yield backend


@pytest.fixture
async def journal(stores: StoreBackend, store: Store) -> Journal:
    return await stores.journal(store)


async def test_what_was_appended_is_in_the_store_behind_a_barrier(journal: Journal, store: Store) -> None:
    turn = make_ended(make_job())
    await journal.append([opened(turn.job), turn])
    await journal.barrier(timeout_s=30.0)
    assert await store.turns.get(turn.id) == turn


async def test_a_barrier_waits_for_appends_that_began_before_it(journal: Journal, store: Store) -> None:
    turns = [opened(make_job(f"turn_{number}")) for number in range(50)]
    async with asyncio.TaskGroup() as tasks:
        for turn in turns:
            tasks.create_task(journal.append([turn]))
        await asyncio.sleep(0)
        await journal.barrier(timeout_s=30.0)
        assert [await store.turns.get(turn.id) for turn in turns] == turns


async def test_a_barrier_with_nothing_before_it_returns(journal: Journal) -> None:
    await journal.barrier(timeout_s=30.0)


async def test_many_appends_at_once_are_all_written(journal: Journal, store: Store) -> None:
    turns = [opened(make_job(f"turn_{number}")) for number in range(500)]
    await asyncio.gather(*(journal.append([turn]) for turn in turns))
    await journal.barrier(timeout_s=30.0)
    assert len(await store.turns.unfinished(limit=1_000)) == 500


async def test_an_empty_append_returns(journal: Journal) -> None:
    await journal.append([])


async def test_a_record_that_is_refused_fails_its_own_caller_only(journal: Journal, store: Store) -> None:
    bad = replace(opened(make_job("bad")), message="\ud800")
    turns = [opened(make_job(f"turn_{number}")) for number in range(3)]
    calls = [journal.append([turns[0]]), journal.append([bad]), journal.append([turns[1]]), journal.append([turns[2]])]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(result, DependencyDown) for result in results] == [False, True, False, False]
    await journal.barrier(timeout_s=30.0)
    assert [await store.turns.get(turn.id) for turn in turns] == turns


async def test_a_caller_who_goes_away_takes_nothing_with_it(journal: Journal, store: Store) -> None:
    turns = [opened(make_job(f"turn_{number}")) for number in range(3)]
    calls = [asyncio.ensure_future(journal.append([turn])) for turn in turns]
    await asyncio.sleep(0)
    calls[1].cancel()
    await asyncio.gather(calls[0], calls[2])
    await journal.barrier(timeout_s=30.0)
    assert await store.turns.get("turn_0") == turns[0]
    assert await store.turns.get("turn_2") == turns[2]

"""The store twin's commits: many turns as one statement, and as several where they are more than one may have."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select, update

from axon.adapters.store import schema
from axon.adapters.store.sqlite import SqliteStore
from axon.adapters.store.sqlite_insert import MAX_ROWS, insert_of
from axon.domain.turn import TurnState, opened
from tests.contracts.builders import make_ended, make_job

_TOO_LARGE = 2**63
"""An ordinal that no column of SQLite holds."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "axon.db")
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


@pytest.mark.parametrize("num_turns", [1, 2, MAX_ROWS, MAX_ROWS + 1, 3 * MAX_ROWS])
async def test_all_turns_of_a_commit_are_written(store: SqliteStore, num_turns: int) -> None:
    turns = [opened(make_job(f"chatcmpl-{number}")) for number in range(num_turns)]
    assert await store.turns.write(turns) == [None] * num_turns
    assert [await store.turns.get(turn.id) for turn in turns] == turns


async def test_a_turn_that_is_opened_and_ended_in_one_commit_has_ended(store: SqliteStore) -> None:
    jobs = [make_job(f"chatcmpl-{number}") for number in range(3)]
    await store.turns.apply([*(opened(job) for job in jobs), *(make_ended(job) for job in jobs)])
    await store.turns.apply([opened(job) for job in jobs])  # late records change nothing
    found = [await store.turns.get(job.id) for job in jobs]
    assert [turn and turn.state for turn in found] == [TurnState.COMPLETED] * 3


@pytest.mark.parametrize("num_turns", [3, MAX_ROWS + 2])
async def test_a_turn_that_cannot_be_written_stops_no_other(store: SqliteStore, num_turns: int) -> None:
    turns = [opened(make_job(f"chatcmpl-{number}")) for number in range(num_turns)]
    turns.insert(1, opened(make_job("chatcmpl-bad", session="conv_1", ordinal=_TOO_LARGE)))
    failures = await store.turns.write(turns)
    assert [turn.id for turn, failure in zip(turns, failures, strict=True) if failure] == ["chatcmpl-bad"]
    assert await store.turns.get("chatcmpl-bad") is None
    assert await store.turns.get(f"chatcmpl-{num_turns - 1}") == turns[-1]


def test_an_insert_has_one_group_of_parameters_for_each_row_and_constants_last() -> None:
    made = insert_of(insert(schema.terms))
    assert made is not None
    names = list(made.names)
    [(text, values)] = made.runs([dict.fromkeys(names, 1), dict.fromkeys(names, 2)])
    group = "(" + ", ".join("?" * len(names)) + ")"
    assert text.endswith(f"VALUES {group}, {group}")
    assert values == [1] * len(names) + [2] * len(names)


def test_what_is_no_insert_of_plain_values_is_left_to_the_database_layer() -> None:
    assert insert_of(update(schema.terms)) is None
    computed = {column.name: func.lower("A") for column in schema.terms.c}
    assert insert_of(insert(schema.terms).values(computed)) is None
    assert insert_of(insert(schema.terms).from_select([*schema.terms.c.keys()], select(schema.terms))) is None

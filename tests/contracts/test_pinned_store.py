"""The store's contract for pins: they are what the turns say, and go with what is erased."""

import itertools
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axon.adapters.store.sqlite import SqliteStore
from axon.domain.model.adapter import JobAdapter
from axon.domain.session.erasure import session_mark
from axon.domain.session.pin import LastPin, Pin, last_pin
from axon.domain.turn import Turn, opened
from axon.ports.store import Store
from tests.contracts.builders import make_ended, make_job
from tests.long import examples

_numbers = itertools.count()


def turn(turn_id: str, version: str = "small@v1", *, generation: int = 0, at: float = 100.0, **changes: Any) -> Turn:
    pin = changes.pop("pin", "pin_a")
    return opened(make_job(turn_id, version=version, pin=pin, generation=generation, created=at, **changes))


class TestPinnedSessions:
    async def test_a_pin_is_the_first_turn_of_the_highest_generation(self, store: Store) -> None:
        await store.turns.apply(
            [
                turn("t3", "small@v3", generation=1, at=130.0, ordinal=3),
                turn("t2", "small@v2", generation=1, at=120.0, ordinal=2),
                turn("t1", "small@v1", at=110.0, ordinal=1),
                turn("other", "small@v9", generation=7, pin="pin_b"),
                turn("none", "small@v9", generation=8, pin=""),
            ]
        )
        found = await store.pinned.last_pin("pin_a")
        assert found == LastPin(pin=Pin(1, "small@v2"), newest="small@v3", used_at=130.0)
        assert await store.pinned.last_pin("unknown") is None
        assert await store.pinned.last_pin("") is None

    async def test_a_pin_outlives_the_words_of_its_turns(self, store: Store) -> None:
        ended = make_ended(turn("t1", at=110.0).job)
        await store.turns.apply([ended])
        assert await store.turns.purge(ended_before=500.0) == 1
        found = await store.pinned.last_pin("pin_a")
        assert found == LastPin(pin=Pin(0, "small@v1"), newest="small@v1", used_at=110.0)
        purged = await store.turns.get("t1")
        assert purged is not None
        assert (purged.job.pin, purged.job.generation) == ("pin_a", 0)

    async def test_a_pin_names_the_files_of_an_adapter_too_also_without_its_words(self, store: Store) -> None:
        adapter = JobAdapter(name="small:sql", digest="ab" * 32, source="/adapters/sql")
        ended = make_ended(turn("t1", at=110.0, adapter=adapter).job)
        await store.turns.apply([ended])
        expected = LastPin(pin=Pin(0, "small@v1:abababababab"), newest="small@v1:abababababab", used_at=110.0)
        assert await store.pinned.last_pin("pin_a") == expected
        assert await store.pinned.count("small@v1", since=0.0) == 1
        assert await store.turns.purge(ended_before=500.0) == 1
        assert await store.pinned.last_pin("pin_a") == expected
        purged = await store.turns.get("t1")
        assert purged is not None
        assert last_pin([purged]) == expected

    async def test_a_session_of_an_earlier_release_counts_by_its_newest_turn(self, store: Store) -> None:
        await store.turns.apply(
            [
                turn("t1", "mark-1", pin="", session="conv_1", ordinal=1, at=110.0),
                turn("t2", "mark-2", pin="", session="conv_1", ordinal=2, at=120.0),
            ]
        )
        found = await store.pinned.last_pin("pin_a", session="conv_1")
        assert found == LastPin(pin=Pin(0, "mark-2"), newest="mark-2", used_at=120.0)
        assert await store.pinned.last_pin("pin_a", session="conv_2") is None
        await store.turns.apply([turn("t3", "small@v1", session="conv_1", ordinal=3, at=130.0)])
        found = await store.pinned.last_pin("pin_a", session="conv_1")
        assert found == LastPin(pin=Pin(0, "small@v1"), newest="small@v1", used_at=130.0)

    async def test_sessions_on_a_version_are_counted_once_while_they_are_used_and_not_moved(self, store: Store) -> None:
        await store.turns.apply(
            [
                turn("a1", pin="pin_a", at=110.0),
                turn("a2", pin="pin_a", at=120.0),
                turn("b1", pin="pin_b", at=90.0),
                turn("c1", pin="pin_c", at=120.0),
                turn("c2", "small@v2", generation=1, pin="pin_c", at=130.0),
                turn("d1", pin="", at=130.0),
            ]
        )
        assert await store.pinned.count("small@v1", since=100.0) == 1
        assert await store.pinned.count("small@v1", since=50.0) == 2
        assert await store.pinned.count("small@v2", since=100.0) == 1
        assert await store.pinned.count("small@v3", since=0.0) == 0

    async def test_erasing_a_session_erases_the_keys_of_its_pins(self, store: Store) -> None:
        job = turn("t1", session="conv_1", retain=True).job
        await store.turns.apply([make_ended(job), turn("running", session="conv_1", pin="pin_b")])
        assert sorted(await store.pinned.keys("conv_1")) == ["pin_a", "pin_b"]
        assert await store.pinned.keys("") == []
        await store.tombstones.put([session_mark("conv_1")], at=300.0)
        await store.turns.erase_session("conv_1")
        await store.turns.apply([make_ended(turn("running", session="conv_1", pin="pin_b").job)])
        assert await store.pinned.keys("conv_1") == []
        assert await store.pinned.last_pin("pin_a") is None
        assert await store.pinned.last_pin("pin_b") is None


async def test_the_queries_of_pins_walk_an_index(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "axon.db")
    await store.open()
    plans = []
    try:
        async with store._opened.database.connect() as connection:
            for query in (*store.pinned.queries("pin_a"), store.pinned.counting("small@v1", 1.0)):
                compiled = query.compile(connection.engine.sync_engine, compile_kwargs={"literal_binds": True})
                plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}")
                plans.append(" ".join(row.detail for row in plan))
    finally:
        await store.aclose()
    assert all("turns_by_pin (pin=?" in plan for plan in plans)
    assert "turns_by_version (version=? AND opened_at>?)" in plans[2]


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from([1.0, 2.0, 3.0]), st.sampled_from("xyz")),
        max_size=6,
    )
)
async def test_the_store_says_what_the_rule_says(tmp_path: Path, said: list[tuple[int, int, float, str]]) -> None:
    key = f"pin_{next(_numbers)}"
    turns = [
        turn(f"{key}_{number}", version, pin=key, generation=generation, ordinal=ordinal, at=at)
        for number, (generation, ordinal, at, version) in enumerate(said)
    ]
    store = SqliteStore(tmp_path / "axon.db")
    await store.open()
    try:
        await store.turns.apply(turns)
        assert await store.pinned.last_pin(key) == last_pin(turns)
    finally:
        await store.aclose()

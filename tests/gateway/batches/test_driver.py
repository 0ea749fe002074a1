"""A batch whose runner dies at every step there is: each line ends in exactly one file, and is answered once."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axon.adapters.files.directory import DirectoryFiles
from axon.adapters.store.sqlite import SqliteStore
from axon.domain.batch import Batch, BatchState, Result, cancelled, expired, validated
from axon.domain.tenants.tenant import Terms
from axon.errors import DependencyDown
from axon.gateway.batches import results
from axon.gateway.batches.calls import in_flight, line_terms
from axon.gateway.batches.verdict import Answer
from tests.gateway.batches.driver_world import NAMES, Call, Crash, Fuse, World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store, files = SqliteStore(tmp_path / "axon.db"), DirectoryFiles(tmp_path / "files")
    await store.open()
    await files.open()
    yield World(store, files)
    await store.aclose()


async def stored(world: World, batch: Batch) -> Batch:
    found = await world.store.batches.get(batch.id)
    assert found is not None
    return found


@pytest.mark.parametrize("after", [False, True], ids=["before its effect", "after its effect"])
async def test_a_crash_at_any_call_loses_no_line_and_answers_none_twice(world: World, after: bool) -> None:
    whole = Fuse(after=after)
    batch = await world.batch()
    await world.driver(batch, whole).run()
    done = await world.check(batch.id)
    assert (done.completed, done.failed) == (5, 1)
    assert whole.num > 15
    for at in range(1, whole.num + 1):
        batch = await world.batch()
        with pytest.raises(Crash):
            await world.driver(batch, Fuse(at, after=after)).run()
        await world.driver(await stored(world, batch), Fuse()).run()
        await world.check(batch.id)
    assert set(world.turns.num_run.values()) == {1}


async def test_two_crashes_in_one_batch_are_as_harmless(world: World) -> None:
    for first, second in itertools.product(range(2, 16, 4), repeat=2):
        batch = await world.batch()
        for at in (first, second):
            with contextlib.suppress(Crash):
                await world.driver(await stored(world, batch), Fuse(at)).run()
        await world.driver(await stored(world, batch), Fuse()).run()
        await world.check(batch.id)
    assert set(world.turns.num_run.values()) == {1}


async def test_two_runners_of_one_batch_write_one_result_for_each_line(world: World) -> None:
    batch = await world.batch()
    paused = world.driver(batch, Fuse())
    await world.driver(batch, Fuse()).run()
    await paused.run()  # it finds that the batch has changed
    await world.check(batch.id)
    assert set(world.turns.num_run.values()) == {1}


async def test_a_batch_that_is_cancelled_by_another_gateway_stops(world: World) -> None:
    batch = await world.batch()
    driver = world.driver(batch, Fuse())
    new = cancelled(batch, world.clock.now())
    assert await world.store.batches.change(batch, new)
    driver.note_change(new)
    await driver.run()
    end = await stored(world, batch)
    assert (end.state, end.output_file_id, end.error_file_id) == (BatchState.CANCELLED, "", "")
    assert not world.turns.num_run


async def test_a_batch_past_its_window_is_expired_with_every_line_in_its_error_file(world: World) -> None:
    batch = await world.batch()
    with pytest.raises(Crash):
        await world.driver(batch, Fuse(3)).run()  # it is checked and not begun
    world.clock.advance(2000)
    await world.driver(await stored(world, batch), Fuse()).run()
    assert (await world.check(batch.id, BatchState.EXPIRED)).completed == 0


async def test_an_input_that_is_gone_fails_the_batch(world: World) -> None:
    batch = await world.batch()
    await world.files.delete(batch.input_file_id)
    await world.driver(batch, Fuse()).run()
    end = await stored(world, batch)
    assert (end.state, end.problems[0].code) == (BatchState.FAILED, "input_file_missing")


@pytest.mark.parametrize("state", [BatchState.IN_PROGRESS, BatchState.FINALIZING])
async def test_an_input_that_is_lost_later_ends_the_batch_with_what_is_known(world: World, state: BatchState) -> None:
    batch = await world.batch()
    good = Result(line=1, ok=True, body=b'{"custom_id":"a"}')
    running = validated(batch, len(NAMES), world.clock.now())
    late = running if state is BatchState.IN_PROGRESS else expired(running, world.clock.now())
    assert await world.store.batches.change(batch, replace(late, revision=1))
    await world.store.batches.put_results(batch.id, [good])
    await world.files.delete(batch.input_file_id)
    await asyncio.wait_for(world.driver(await stored(world, batch), Fuse()).run(), 5)
    end = await stored(world, batch)
    assert end.state is (BatchState.FAILED if late is running else BatchState.EXPIRED)
    assert end.problems[0].code == "input_file_missing"
    assert (await world.content(end.output_file_id), end.error_file_id) == (["a"], "")


async def test_a_line_that_is_not_good_any_more_fails_the_batch_and_keeps_the_others(world: World) -> None:
    batch = await world.batch(["a", "x" * 2000])  # longer than the limit is now
    running = validated(batch, 2, world.clock.now())
    assert await world.store.batches.change(batch, running)
    driver = world.driver(running, Fuse())
    driver._parts = replace(driver._parts, max_body_bytes=-7000)
    await asyncio.wait_for(driver.run(), 5)
    end = await stored(world, batch)
    assert (end.state, end.problems[0].line) == (BatchState.FAILED, 2)
    assert await world.content(end.error_file_id) == ["a"]


async def test_an_answer_that_is_too_large_is_an_error_of_its_line_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "MAX_ANSWER_BYTES", 6)
    batch = await world.batch()
    await world.driver(batch, Fuse()).run()
    end = await world.check(batch.id)
    data = b"".join([piece async for piece in world.files.read(end.error_file_id)])
    assert {json.loads(line)["error"]["code"] for line in data.splitlines()} == {"response_too_large"}


def test_results_are_written_in_pages_of_bounded_bytes() -> None:
    made = [Result(line=number, ok=True, body=b"x" * size) for number, size in enumerate((3, 3, 9, 1))]
    assert [[each.line for each in page] for page in results.pages(made, 6)] == [[0, 1], [2], [3]]
    assert list(results.pages([], 6)) == []


async def test_the_lines_that_are_under_way_have_bounded_bytes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axon.gateway.batches.running._IN_FLIGHT_BYTES", 10)
    monkeypatch.setattr("axon.gateway.batches.driver._BLOCK_BYTES", 10)
    num_running: list[int] = []
    send = Call.send

    async def counted(self: Call) -> Answer:
        num_running.append(1)
        assert len(num_running) == 1
        await asyncio.sleep(0)
        num_running.pop()
        return await send(self)

    monkeypatch.setattr(Call, "send", counted)
    batch = await world.batch()
    await world.driver(batch, Fuse()).run()
    await world.check(batch.id)


@pytest.mark.parametrize("why", ["suspended", "spent"])
async def test_a_batch_that_cannot_go_on_gives_its_place_back(
    world: World, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr("axon.gateway.batches.running._PATIENCE_S", 0.0)
    monkeypatch.setattr("axon.gateway.batches.running._LOOK_S", 0.01)

    async def refused(self: Call) -> Answer:
        return Answer(status=429, body=b"{}", code="budget_spent", retry_after_s=30.0)

    async def suspended(tenant: str) -> None:
        return None

    batch = await world.batch()
    driver = world.driver(batch, Fuse())
    if why == "spent":
        monkeypatch.setattr(Call, "send", refused)
    else:
        driver._parts = replace(driver._parts, terms=suspended)
    assert not await asyncio.wait_for(driver.run(), 5)
    monkeypatch.undo()
    assert await world.driver(await stored(world, batch), Fuse()).run()
    await world.check(batch.id)


async def test_a_service_that_is_away_is_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axon.gateway.batches.driver._AGAIN_S", 0.0)
    batch, fuse = await world.batch(), Fuse()
    driver, burns = world.driver(batch, fuse), itertools.count()

    def burn(*, after: bool) -> None:
        if (number := next(burns)) % 7 == 3 and number < 70:  # a step with more calls would never be done
            raise DependencyDown

    fuse.burn = burn  # type: ignore[method-assign]
    world.turns.fuse = Fuse()
    await driver.run()
    await world.check(batch.id)
    assert set(world.turns.num_run.values()) == {1}


async def test_an_end_whose_reply_is_lost_leaves_the_files_as_they_are(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("axon.gateway.batches.driver._AGAIN_S", 0.0)
    batch, change = await world.batch(), world.store.batches.change

    async def lost(*args: Any, **kwargs: Any) -> bool:
        await change(*args, **kwargs)
        raise DependencyDown

    monkeypatch.setattr(world.store.batches, "change", lost)
    await world.driver(batch, Fuse()).run()
    assert (await world.check(batch.id)).completed == 5
    await world.store.batches.purge(created_before=0.0)
    assert (await world.check(batch.id)).completed == 5


async def test_a_second_writer_of_a_batch_deletes_its_own_files_and_no_others(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    batch, done = await world.batch(), world.store.batches.done
    rival = {"is_due": True}

    async def overtaken(batch_id: str) -> Any:
        now = await stored(world, batch)
        if now.state is BatchState.FINALIZING and rival.pop("is_due", False):
            await world.driver(now, Fuse()).run()
            await world.store.batches.purge(created_before=0.0)
        return await done(batch_id)

    monkeypatch.setattr(world.store.batches, "done", overtaken)
    await world.driver(batch, Fuse()).run()
    end = await world.check(batch.id)
    written = {each.name for each in (tmp_path / "files" / "whole").iterdir()}
    assert written == {batch.input_file_id, end.output_file_id, end.error_file_id}


def test_lines_run_at_the_flex_tier_and_take_half_of_what_their_tenant_may_ask() -> None:
    terms = line_terms(Terms(requests_per_minute=5, tokens_per_day=7, concurrent=9))
    assert (terms.highest_tier, terms.requests_per_minute, terms.tokens_per_day) == ("flex", 0, 7)
    assert [in_flight(32, Terms(concurrent=n)) for n in (0, 1, 9, 1000)] == [32, 1, 4, 32]

"""The store's contract for files and batches: records by tenant, leases, and one result for each line."""

import asyncio
from dataclasses import replace

from axon.domain.batch import Batch, BatchState, LineProblem, Result, cancelled, ended, refused, validated
from axon.domain.file import File, Purpose
from axon.domain.tenants.storage import Stored
from axon.ports.store import Store

FILE = File(
    id="file-1", tenant="acme", filename="größe.jsonl", purpose=Purpose.BATCH, num_bytes=7, created_at=1, expires_at=9
)
BATCH = Batch(
    id="batch_1",
    tenant="acme",
    endpoint="/v1/completions",
    input_file_id="file-1",
    created_at=100.0,
    expires_at=200.0,
    metadata={"a": "b"},
)


async def test_a_file_is_found_by_its_id_and_listed_for_its_tenant_alone(store: Store) -> None:
    others = [replace(FILE, id=f"file-{number}") for number in range(2, 5)]
    for file in (FILE, *others, replace(FILE, id="file-9", tenant="other")):
        await store.files.put(file)
    await store.files.put(replace(FILE, id="file-5", purpose=Purpose.BATCH_OUTPUT))
    assert await store.files.get("file-1") == FILE
    assert await store.files.get("file-\x00") is None
    assert [file.id for file in await store.files.page("acme", after="", limit=2)] == ["file-5", "file-4"]
    assert [file.id for file in await store.files.page("acme", after="file-4", limit=9)] == [
        "file-3",
        "file-2",
        "file-1",
    ]
    up = await store.files.page("acme", after="file-3", limit=9, newest_first=False, purpose=Purpose.BATCH)
    assert [file.id for file in up] == ["file-4"]


async def test_files_count_for_the_quota_until_they_are_removed(store: Store) -> None:
    for _ in range(2):
        await store.files.put(FILE)  # a file that is written again counts once
    assert await store.storage.stored("acme") == Stored(num_bytes=7, num_objects=1)
    assert await store.files.remove("file-1")
    assert not await store.files.remove("file-1")
    assert await store.storage.stored("acme") == Stored()


async def test_files_whose_time_is_over_and_ids_without_a_file_are_found(store: Store) -> None:
    await store.files.put(FILE)
    await store.files.put(replace(FILE, id="file-2", expires_at=11))
    assert await store.files.expired(at=10, limit=5) == ["file-1"]
    assert await store.files.unknown(["file-2", "file-3"]) == {"file-3"}


async def test_a_batch_is_changed_by_whoever_saw_its_last_change(store: Store) -> None:
    await store.batches.add(BATCH, max_active=9)
    assert await store.batches.get("batch_1") == BATCH
    good, stopped = validated(BATCH, 3, 101.0), cancelled(BATCH, 101.0)
    assert await store.batches.change(BATCH, good)
    assert not await store.batches.change(BATCH, stopped)
    assert await store.batches.get("batch_1") == good
    assert await store.batches.get("batch_2") is None


async def test_batches_are_listed_for_their_tenant_the_newest_first(store: Store) -> None:
    for number in range(1, 4):
        await store.batches.add(replace(BATCH, id=f"batch_{number}"), max_active=9)
    await store.batches.add(replace(BATCH, id="batch_8", tenant="other"), max_active=9)
    assert [each.id for each in await store.batches.page("acme", after="", limit=2)] == ["batch_3", "batch_2"]
    assert [each.id for each in await store.batches.page("acme", after="batch_2", limit=2)] == ["batch_1"]
    problem = LineProblem(line=2, code="invalid_json_line", message="no")
    assert await store.batches.change(replace(BATCH, id="batch_2"), refused(replace(BATCH, id="batch_2"), [problem], 1))
    assert await store.batches.active("acme") == 2
    assert sorted(await store.batches.users("file-1")) == ["batch_1", "batch_3", "batch_8"]


async def test_a_batch_is_held_by_one_until_its_lease_lapses(store: Store) -> None:
    await store.batches.add(BATCH, max_active=9)
    assert [each.id for each in await store.batches.take("a", now=100, until=110, limit=4)] == ["batch_1"]
    assert await store.batches.take("b", now=105, until=115, limit=4) == []
    assert await store.batches.keep("batch_1", "a", until=120) == BATCH
    assert await store.batches.take("b", now=115, until=125, limit=4) == []
    assert [each.id for each in await store.batches.take("b", now=121, until=131, limit=4)] == ["batch_1"]
    assert await store.batches.keep("batch_1", "a", until=140) is None
    await store.batches.release("batch_1", "a")  # what it does not hold
    assert await store.batches.take("c", now=122, until=132, limit=4) == []
    await store.batches.release("batch_1", "b")
    assert [each.id for each in await store.batches.take("c", now=122, until=132, limit=4)] == ["batch_1"]


async def test_tenants_take_turns_and_one_that_has_a_batch_running_comes_later(store: Store) -> None:
    for number, tenant in enumerate(("a", "a", "a", "b", "b", "c"), 1):
        await store.batches.add(replace(BATCH, id=f"batch_{number}", tenant=tenant, created_at=number), max_active=9)
    taken = [await store.batches.take("x", now=100, until=110, limit=num) for num in (1, 2, 2, 9)]
    ids = [[each.id for each in batches] for batches in taken]
    assert ids == [["batch_1"], ["batch_4", "batch_6"], ["batch_2", "batch_5"], ["batch_3"]]


async def test_a_batch_that_is_given_back_to_rest_is_taken_after_its_rest(store: Store) -> None:
    await store.batches.add(BATCH, max_active=9)
    await store.batches.take("a", now=100, until=110, limit=4)
    await store.batches.release("batch_1", "a", until=120)
    assert await store.batches.take("b", now=119, until=130, limit=4) == []
    assert len(await store.batches.take("b", now=121, until=130, limit=4)) == 1


async def test_of_batches_that_are_added_at_once_no_more_than_the_limit_are_taken_in(store: Store) -> None:
    made = [replace(BATCH, id=f"batch_{number}") for number in range(8)]
    added = await asyncio.gather(*(store.batches.add(each, max_active=3) for each in made))
    assert sum(added) == 3
    assert await store.batches.active("acme") == 3
    assert await store.batches.add(replace(BATCH, id="batch_9", tenant="other"), max_active=3)


async def test_a_line_keeps_its_first_result(store: Store) -> None:
    await store.batches.add(BATCH, max_active=9)
    first = [Result(line=number, ok=number != 2, body=b"%d" % number) for number in (3, 1, 2)]
    await store.batches.put_results("batch_1", first)
    await store.batches.put_results(
        "batch_1", [Result(line=2, ok=True, body=b"again"), Result(line=4, ok=True, body=b"4")]
    )
    await store.batches.put_results("batch_2", [Result(line=1, ok=True, body=b"other")])
    assert await store.batches.done("batch_1") == {1: True, 2: False, 3: True, 4: True}
    assert await store.batches.count("batch_1") == (3, 1)
    assert [each.body for each in await store.batches.results("batch_1", after=1, limit=2, max_bytes=99)] == [
        b"2",
        b"3",
    ]


async def test_results_are_read_in_pages_of_bounded_bytes_with_one_result_at_least(store: Store) -> None:
    sizes = (3, 3, 9, 1)
    await store.batches.put_results(
        "batch_1", [Result(line=number, ok=True, body=b"\xff" * size) for number, size in enumerate(sizes, 1)]
    )
    found, after = [], 0
    while page := await store.batches.results("batch_1", after=after, limit=9, max_bytes=6):
        found.append([each.line for each in page])
        after = page[-1].line
    assert found == [[1, 2], [3], [4]]


async def test_the_change_that_ends_a_batch_shows_its_files_or_none(store: Store) -> None:
    running = validated(BATCH, 1, 101.0)
    await store.batches.add(running, max_active=9)
    done = ended(running, completed=1, failed=0, output="file-1", errors="", now=102.0)
    assert await store.batches.change(running, done, files=[FILE])
    assert not await store.batches.change(running, done, files=[replace(FILE, id="file-2")])
    assert [file.id for file in await store.files.page("acme", after="", limit=9)] == ["file-1"]


async def test_time_deletes_the_results_of_an_ended_batch_and_the_batch(store: Store) -> None:
    running = validated(BATCH, 1, 101.0)
    await store.batches.add(running, max_active=9)
    await store.batches.put_results("batch_1", [Result(line=1, ok=True, body=b"1")])
    done = replace(ended(running, completed=1, failed=0, output="o", errors="", now=102.0), state=BatchState.COMPLETED)
    assert await store.batches.change(running, done)
    assert await store.batches.done("batch_1") == {1: True}
    assert await store.batches.take("a", now=500, until=510, limit=4) == []
    await store.batches.put_results("batch_1", [Result(line=1, ok=True, body=b"a late one")])
    assert await store.batches.purge(created_before=100.0) == 0
    assert await store.batches.done("batch_1") == {}
    assert await store.batches.purge(created_before=101.0) == 1
    assert await store.batches.get("batch_1") is None

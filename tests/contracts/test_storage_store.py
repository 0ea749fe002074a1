"""The store's contract for a quota: how many bytes and objects are kept for a tenant, and when they are given back."""

import asyncio
from dataclasses import replace

import pytest

from axon.domain import wire
from axon.domain.content.item import Item
from axon.domain.session.conversation import Conversation, Entry
from axon.domain.session.erasure import turn_mark
from axon.domain.tenants.storage import Stored
from axon.domain.turn import Turn, opened
from axon.ports.store import Store
from tests.contracts.builders import make_ended, make_job
from tests.contracts.test_batch_store import BATCH, FILE

CONVERSATION = Conversation(id="conv_1", tenant="acme", created_at=100.0, metadata={"topic": "größer"})
NOTHING = Stored()


def entry(ordinal: int, *texts: str) -> Entry:
    items = tuple(Item(id=f"msg_{ordinal}_{n}", role="user", texts=(text,)) for n, text in enumerate(texts))
    return Entry(ordinal=ordinal, at=100.0, id=f"ent_{ordinal}", items=items)


def retained(turn_id: str, *, tenant: str = "acme", session: str = "", at: float = 101.0) -> Turn:
    return make_ended(make_job(turn_id, tenant=tenant, session=session, retain=True), at=at)


def size(*turns: Turn) -> int:
    return sum(len(wire.encode(turn)) for turn in turns)


async def test_a_tenant_without_anything_has_nothing_stored(store: Store) -> None:
    await store.conversations.put(CONVERSATION, at=100.0)
    assert await store.storage.stored("other") == NOTHING
    assert await store.storage.stored("a\x00b") == NOTHING


async def test_a_conversation_counts_with_its_metadata_and_items(store: Store) -> None:
    await store.conversations.put(CONVERSATION, at=100.0)
    bare = await store.storage.stored("acme")
    assert (bare.num_objects, bare.num_bytes > len("größer".encode())) == (1, True)
    await store.conversations.put(replace(CONVERSATION, id="conv_2"), at=100.0, first=entry(1, "x" * 5000, "y"))
    both = await store.storage.stored("acme")
    assert both.num_objects == 4
    assert 5000 < both.num_bytes - 2 * bare.num_bytes < 5300


async def test_an_added_entry_counts_once_however_often_it_is_added(store: Store) -> None:
    await store.conversations.put(CONVERSATION, at=100.0)
    before = await store.storage.stored("acme")
    for _ in range(2):
        await store.conversations.add("conv_1", entry(1, "x" * 3000))
    after = await store.storage.stored("acme")
    assert after.num_objects == before.num_objects + 1
    assert 3000 < after.num_bytes - before.num_bytes < 3200


async def test_a_removed_item_is_given_back_once(store: Store) -> None:
    await store.conversations.put(CONVERSATION, at=100.0, first=entry(1, "short"))
    before = await store.storage.stored("acme")
    await store.conversations.add("conv_1", entry(2, "x" * 3000))
    for _ in range(2):
        await store.conversations.remove_item("conv_1", "msg_2_0")
    after = await store.storage.stored("acme")
    assert after.num_objects == before.num_objects
    assert 0 <= after.num_bytes - before.num_bytes <= 1  # the list that it left empty


async def test_metadata_that_changes_is_counted_anew(store: Store) -> None:
    await store.conversations.put(CONVERSATION, at=100.0, first=entry(1, "kept"))
    before = await store.storage.stored("acme")
    assert await store.conversations.change("conv_1", {"topic": "x" * 400}, at=101.0)
    assert (await store.storage.stored("acme")).num_bytes > before.num_bytes + 380
    assert await store.conversations.change("conv_1", CONVERSATION.metadata, at=102.0)
    assert await store.storage.stored("acme") == before


async def test_an_erased_conversation_is_given_back(store: Store) -> None:
    await store.conversations.put(CONVERSATION, at=100.0, first=entry(1, "x", "y"))
    await store.conversations.add("conv_1", entry(2, "z"))
    await store.conversations.erase(["conv_1"])
    await store.conversations.erase(["conv_1"])
    assert await store.storage.stored("acme") == NOTHING


async def test_a_retained_turn_counts_from_its_acceptance_and_at_its_end_with_its_answer(store: Store) -> None:
    end = retained("resp_1", session="resp_1")
    await store.turns.apply([opened(end.job)])
    assert await store.storage.stored("acme") == Stored(num_bytes=size(opened(end.job)), num_objects=1)
    await store.turns.apply([end])
    await store.turns.apply([opened(end.job), end])
    assert await store.storage.stored("acme") == Stored(num_bytes=size(end), num_objects=1)


async def test_a_turn_that_is_not_retained_counts_for_nothing(store: Store) -> None:
    await store.turns.apply([make_ended(make_job("chat", tenant="acme", retain=False))])
    assert await store.storage.stored("acme") == NOTHING


@pytest.mark.parametrize("how", ["erase_turn", "erase_session", "purge_idle"])
async def test_a_turn_without_words_is_given_back(store: Store, how: str) -> None:
    gone, other = retained("resp_1", session="resp_1"), retained("resp_2", session="resp_2", at=900.0)
    await store.turns.apply([gone, other])
    match how:
        case "erase_turn":
            await store.turns.erase_turn("resp_1")
        case "erase_session":
            await store.turns.erase_session("resp_1")
        case _:
            await store.turns.purge_idle(before=500.0)
    assert await store.storage.stored("acme") == Stored(num_bytes=size(other), num_objects=1)


async def test_a_turn_erased_while_it_ran_counts_for_nothing_after_its_end(store: Store) -> None:
    end = retained("resp_1", session="resp_1")
    await store.turns.apply([opened(end.job)])
    await store.tombstones.put([turn_mark("resp_1")], at=100.0)
    await store.turns.apply([end])
    assert await store.storage.stored("acme") == NOTHING


async def test_many_writers_at_once_are_all_counted(store: Store) -> None:
    await store.conversations.put(CONVERSATION, at=100.0)
    before = await store.storage.stored("acme")
    await asyncio.gather(*(store.conversations.add("conv_1", entry(number, "word")) for number in range(20)))
    after = await store.storage.stored("acme")
    assert after.num_objects == before.num_objects + 20
    await store.conversations.erase(["conv_1"])
    assert await store.storage.stored("acme") == NOTHING


async def test_a_census_counts_sessions_batches_and_files_of_all_tenants(store: Store) -> None:
    await store.turns.apply([opened(make_job("turn_1", session="sess_1", created=100.0))])
    await store.turns.apply(
        [retained("turn_2", session="sess_2"), retained("turn_3", tenant="other", session="sess_3")]
    )
    await store.turns.apply([retained("turn_4", session="sess_2"), retained("turn_5", session="")])
    await store.batches.add(BATCH, max_active=9)
    await store.files.put(FILE)
    census = await store.storage.census(since=0.0)
    assert (census.active_sessions, census.sessions) == (1, 3)
    assert (census.batches, census.files) == ({str(BATCH.state): 1, "ended": 0}, {str(FILE.purpose): 1})
    assert (await store.storage.census(since=1e12)).sessions == 1

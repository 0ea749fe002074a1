"""The store's contract for sessions: turns in order, conversations, and words that were taken back."""

from dataclasses import replace
from typing import Any

import pytest

from axon.domain.content.item import Item
from axon.domain.session.conversation import Conversation, Entry, entry_of
from axon.domain.session.erasure import session_mark, turn_mark
from axon.domain.turn import opened
from axon.ports.store import Store
from tests.contracts.builders import make_ended, make_job

CONVERSATION = Conversation(id="conv_1", tenant="acme", created_at=100.0, metadata={"topic": "größer"})


def item(number: int) -> Item:
    return Item(id=f"msg_{number}", role="user", texts=(f"word {number}", " 🦀"))


def entry(ordinal: int, *numbers: int, at: float = 100.0) -> Entry:
    return Entry(ordinal=ordinal, at=at, id=f"ent_{ordinal}", items=tuple(map(item, numbers)))


async def purged(store: Store, turn_id: str) -> bool:
    turn = await store.turns.get(turn_id)
    assert turn is not None
    return turn.job.purged


class TestTurnsOfASession:
    async def test_they_come_in_order_whoever_was_written_first(self, store: Store) -> None:
        turns = [
            make_ended(make_job(f"resp_{ordinal}", session="conv_1", ordinal=ordinal, items=(item(ordinal),)))
            for ordinal in (3, 1, 2)
        ]
        await store.turns.apply([*turns, make_ended(make_job("resp_other", session="conv_2"))])
        told = [entry_of(turns[number]) for number in (1, 2, 0)]
        assert [each.items[0] for each in told] == [item(1), item(2), item(3)]
        assert await store.turns.entries("conv_1", limit=10) == told
        assert await store.turns.entries("conv_1", limit=2) == told[1:]
        assert await store.turns.entries("conv_3", limit=2) == []

    async def test_a_long_session_is_read_to_its_beginning(self, store: Store) -> None:
        turns = [make_ended(make_job(f"resp_{number:04}", session="conv_1", ordinal=number)) for number in range(450)]
        await store.turns.apply(turns)
        told = [entry_of(turn) for turn in turns]
        assert await store.turns.entries("conv_1", limit=1_000) == told
        assert await store.turns.entries("conv_1", limit=401) == told[-401:]

    async def test_a_turn_that_runs_or_failed_has_said_nothing(self, store: Store) -> None:
        running = opened(make_job("resp_1", session="conv_1", ordinal=1, items=(item(1),)))
        failed = make_ended(make_job("resp_2", session="conv_1", ordinal=2, items=(item(2),)), state="failed")
        await store.turns.apply([running, failed])
        told = await store.turns.entries("conv_1", limit=10)
        assert [(entry.items, entry.running) for entry in told] == [((), True), ((), False)]
        assert await store.turns.states("conv_1") == {"resp_1": "opened", "resp_2": "failed"}
        assert await store.turns.states("") == {}

    async def test_of_two_with_the_same_place_none_is_lost_and_the_earlier_comes_first(self, store: Store) -> None:
        turns = [make_ended(make_job(f"resp_{at}", session="conv_1", ordinal=1, created=at)) for at in (5.0, 4.0)]
        await store.turns.apply(turns)
        assert await store.turns.entries("conv_1", limit=10) == [entry_of(turns[1]), entry_of(turns[0])]

    async def test_sessions_that_went_on_from_another_are_found(self, store: Store) -> None:
        await store.turns.apply(
            [
                make_ended(make_job("resp_1", session="conv_1", ordinal=1)),
                make_ended(make_job("resp_2", session="conv_1", ordinal=2)),
                make_ended(make_job("resp_3", session="resp_3", previous="resp_1")),
                make_ended(make_job("resp_4", session="resp_3", previous="resp_3")),
                make_ended(make_job("resp_5", session="resp_5", previous="resp_unknown")),
            ]
        )
        assert await store.turns.branches("conv_1") == ["resp_3"]
        assert await store.turns.branches("resp_3") == []

    async def test_turns_without_a_session_are_in_none(self, store: Store) -> None:
        await store.turns.apply([make_ended(make_job(session=""))])
        assert await store.turns.entries("", limit=10) == []

    async def test_an_id_that_no_store_can_hold_is_unknown(self, store: Store) -> None:
        assert await store.turns.entries("conv_\x00", limit=10) == []
        assert await store.turns.states("conv_\x00") == {}
        assert await store.conversations.get("conv_\x00") is None


class TestErasing:
    async def test_an_erased_turn_keeps_its_usage_and_its_place(self, store: Store) -> None:
        turn = make_ended(make_job("resp_2", session="resp_1", ordinal=2, previous="resp_1", items=(item(1),)))
        await store.turns.apply([turn])
        assert await store.turns.erase_turn("resp_2") == 1
        left = await store.turns.get("resp_2")
        assert left is not None
        assert (left.job.purged, left.tokens, left.job.items) == (True, (), ())
        assert (left.usage, left.job.previous, left.job.ordinal) == (turn.usage, "resp_1", 2)

    async def test_a_session_is_erased_with_all_its_ended_turns(self, store: Store) -> None:
        ended = [make_ended(make_job(f"resp_{number}", session="conv_1", ordinal=number)) for number in (1, 2)]
        running = opened(make_job("resp_3", session="conv_1", ordinal=3))
        await store.turns.apply([*ended, running, make_ended(make_job("resp_9", session="conv_2"))])
        assert await store.turns.erase_session("conv_1") == 2
        assert [await purged(store, f"resp_{number}") for number in (1, 2, 3, 9)] == [True, True, False, False]
        assert [entry.items for entry in await store.turns.entries("conv_1", limit=10)] == [(), (), ()]

    async def test_the_first_turn_of_a_chain_is_erased_alone_though_the_chain_has_its_name(self, store: Store) -> None:
        first = make_ended(make_job("resp_1", session="resp_1", ordinal=1, items=(item(1),)))
        second = make_ended(make_job("resp_2", session="resp_1", ordinal=2, previous="resp_1", items=(item(2),)))
        await store.tombstones.put([turn_mark("resp_1")], at=100.0)
        await store.turns.apply([opened(second.job), first])
        await store.turns.apply([second])
        assert await store.turns.erase_turn("resp_1") == 0  # it came in without its words
        assert [await purged(store, turn_id) for turn_id in ("resp_1", "resp_2")] == [True, False]

    @pytest.mark.parametrize("mark", [turn_mark("resp_1"), session_mark("conv_1")])
    async def test_the_end_of_a_turn_erased_while_it_ran_brings_no_words_back(self, store: Store, mark: str) -> None:
        end = make_ended(make_job("resp_1", session="conv_1", items=(item(1),)))
        await store.turns.apply([opened(end.job)])
        await store.tombstones.put([mark, mark], at=100.0)
        await store.tombstones.put([mark], at=101.0)
        await store.turns.apply([end, make_ended(make_job("resp_2", session="conv_2"))])
        found = await store.turns.get("resp_1")
        assert found is not None
        assert (found.job.purged, found.tokens, found.usage) == (True, (), end.usage)
        other = await store.turns.get("resp_2")
        assert other is not None
        assert not other.job.purged

    async def test_the_end_of_a_stored_chat_erased_while_it_ran_brings_no_words_back(self, store: Store) -> None:
        end = make_ended(make_job("chatcmpl-1", session="", retain=True))
        await store.turns.apply([opened(end.job)])
        await store.tombstones.put([turn_mark("chatcmpl-1")], at=100.0)
        await store.turns.apply([end, make_ended(make_job("chatcmpl-2", session="", retain=True))])
        assert [await purged(store, turn_id) for turn_id in ("chatcmpl-1", "chatcmpl-2")] == [True, False]

    async def test_tombstones_are_found_by_their_time(self, store: Store) -> None:
        await store.tombstones.put([turn_mark("resp_1")], at=100.0)
        await store.tombstones.put([turn_mark("resp_1"), session_mark("conv_1")], at=200.0)
        assert sorted(await store.tombstones.since(50.0)) == [session_mark("conv_1"), turn_mark("resp_1")]
        assert list(await store.tombstones.since(200.0)) == [session_mark("conv_1")]
        assert list(await store.tombstones.since(201.0)) == []

    async def test_tombstones_leave_when_nothing_can_be_on_its_way(self, store: Store) -> None:
        await store.tombstones.put(["resp_1"], at=100.0)
        await store.tombstones.put(["resp_2"], at=200.0)
        assert await store.tombstones.purge(before=150.0) == 1
        assert await store.tombstones.purge(before=150.0) == 0


class TestIdling:
    async def test_a_session_that_nobody_goes_on_with_is_forgotten_as_one(self, store: Store) -> None:
        def turn(turn_id: str, session: str, opened_at: float) -> None:
            job = make_job(turn_id, session=session, created=opened_at, retain=True)
            turns.append(make_ended(job, at=opened_at + 1))

        turns: list[object] = []
        turn("resp_1", "resp_1", 100.0)
        turn("resp_2", "resp_1", 200.0)
        turn("resp_3", "resp_3", 100.0)
        turn("resp_4", "resp_3", 900.0)
        turn("resp_5", "conv_1", 100.0)
        await store.turns.apply([*turns, make_ended(make_job("chat", session="", retain=True))])  # type: ignore[list-item]
        await store.conversations.put(CONVERSATION, at=800.0)
        assert await store.turns.purge_idle(before=500.0) == 2
        assert await store.turns.purge_idle(before=500.0) == 0
        purged = {}
        for turn_id in ("resp_1", "resp_2", "resp_3", "resp_4", "resp_5", "chat"):
            found = await store.turns.get(turn_id)
            purged[turn_id] = found is not None and found.job.purged
        assert [turn_id for turn_id, gone in purged.items() if gone] == ["resp_1", "resp_2"]

    async def test_conversations_idle_by_their_last_use_or_turn(self, store: Store) -> None:
        for name in ("conv_1", "conv_2", "conv_3"):
            await store.conversations.put(replace(CONVERSATION, id=name), at=100.0)
        await store.conversations.add("conv_2", entry(1, 1, at=600.0))
        await store.turns.apply([make_ended(make_job("resp_1", session="conv_3", created=600.0))])
        assert await store.conversations.idle(before=500.0, limit=10) == ["conv_1"]


class TestConversations:
    async def test_one_comes_back_as_it_was_put_and_its_metadata_can_change(self, store: Store) -> None:
        await store.conversations.put(CONVERSATION, at=100.0)
        assert await store.conversations.get("conv_1") == CONVERSATION
        changed = replace(CONVERSATION, metadata={"a": "b"})
        assert await store.conversations.change("conv_1", {"a": "b"}, at=101.0)
        assert await store.conversations.get("conv_1") == changed
        assert await store.conversations.get("conv_2") is None

    async def test_a_change_does_not_bring_an_erased_one_back(self, store: Store) -> None:
        await store.conversations.put(CONVERSATION, at=100.0)
        await store.conversations.erase(["conv_1"])
        assert not await store.conversations.change("conv_1", {"a": "b"}, at=101.0)
        assert await store.conversations.get("conv_1") is None

    async def test_entries_come_in_order(self, store: Store) -> None:
        first, second, third = entry(1, 1, 2), entry(2, 3), entry(5, 4)
        await store.conversations.put(CONVERSATION, at=100.0, first=first)
        await store.conversations.add("conv_1", third)
        await store.conversations.add("conv_1", second)
        await store.conversations.add("conv_1", second)
        assert await store.conversations.entries("conv_1", limit=10) == ([first, second, third], frozenset())
        assert await store.conversations.entries("conv_1", limit=1) == ([third], frozenset())

    async def test_a_removed_item_is_hidden_and_its_words_are_gone(self, store: Store) -> None:
        await store.conversations.put(CONVERSATION, at=100.0, first=entry(1, 1, 2))
        await store.conversations.remove_item("conv_1", "msg_1")
        await store.conversations.remove_item("conv_1", "msg_1")
        await store.conversations.remove_item("conv_1", "msg_of_a_turn")
        entries, hidden = await store.conversations.entries("conv_1", limit=10)
        assert entries == [replace(entry(1), items=(item(2),))]
        assert hidden == {"msg_1", "msg_of_a_turn"}

    async def test_an_erased_conversation_takes_everything_with_it(self, store: Store) -> None:
        other = replace(CONVERSATION, id="conv_2")
        for each in (CONVERSATION, other):
            await store.conversations.put(each, at=100.0, first=entry(1, 1))
            await store.conversations.remove_item(each.id, "msg_9")
        await store.conversations.erase(["conv_1"])
        await store.conversations.erase(["conv_1"])
        assert await store.conversations.get("conv_1") is None
        assert await store.conversations.entries("conv_1", limit=10) == ([], frozenset())
        assert await store.conversations.entries("conv_2", limit=10) == ([entry(1, 1)], frozenset({"msg_9"}))


class TestRetainedTurns:
    async def test_they_are_listed_page_by_page_by_tenant_prefix_and_deployment(self, store: Store) -> None:
        kept = [
            make_ended(make_job(f"chat-{number}", session="", retain=True, created=100.0 + number // 2))
            for number in range(5)
        ]
        others = [
            make_ended(make_job("chat-a", session="", retain=True, tenant="other")),
            make_ended(make_job("chat-b", session="")),
            make_ended(make_job("chat-c", session="conv_1", retain=True)),
            make_ended(make_job("other-d", session="", retain=True)),
            make_ended(make_job("chat-e", session="", retain=True), state="failed"),
            opened(make_job("chat-f", session="", retain=True)),
        ]
        await store.turns.apply([*kept[::-1], *others])

        async def ids(**query: Any) -> list[str]:
            found = await store.turns.retained("acme", **{"prefix": "chat-", "limit": 10, **query})
            return [turn.id for turn in found]

        names = [turn.id for turn in kept]
        assert await ids() == names
        assert await ids(limit=2) == names[:2]
        assert await ids(after="chat-1", limit=2) == names[2:4]
        assert await ids(after="chat-3", newest_first=True) == names[2::-1]
        assert await ids(deployment="small") == names
        assert await ids(deployment="large") == await ids(after="chat-4") == await ids(prefix="chat%") == []
        await store.turns.erase_turn("chat-2")
        assert await ids() == [*names[:2], *names[3:]]


class TestBranches:
    """A conversation, a branch from one of its turns, a branch of that, and one from the start."""

    async def tell(self, store: Store) -> None:
        jobs = [
            make_job("resp_1", session="conv_1", ordinal=1),
            make_job("resp_2", session="conv_1", ordinal=2),
            make_job("resp_3", session="resp_3", ordinal=1, previous="resp_1"),
            make_job("resp_4", session="resp_3", ordinal=2, previous="resp_3"),
            make_job("resp_5", session="resp_5", ordinal=1, previous="conv_1"),
            make_job("resp_6", session="conv_2", ordinal=1),
        ]
        await store.turns.apply([make_ended(job) for job in jobs])

    async def test_those_from_a_turn_and_from_the_start_are_found(self, store: Store) -> None:
        await self.tell(store)
        assert sorted(await store.turns.branches("conv_1")) == ["resp_3", "resp_5"]
        assert list(await store.turns.branches("resp_3")) == []

    async def test_the_turns_of_sessions_come_in_the_order_of_their_opening(self, store: Store) -> None:
        await self.tell(store)
        sessions = ["conv_1", "resp_5", "resp_3", ""]
        told = [turn.id for turn in await store.turns.told(sessions, limit=10)]
        assert told == ["resp_1", "resp_2", "resp_3", "resp_4", "resp_5"]
        later = await store.turns.told(sessions, limit=2, after="resp_2")
        assert [turn.id for turn in later] == ["resp_3", "resp_4"]
        assert await store.turns.told([], limit=2) == []

    async def test_a_running_turn_is_told_and_an_erased_one_is_not(self, store: Store) -> None:
        await self.tell(store)
        await store.turns.apply([opened(make_job("resp_9", session="conv_1", ordinal=3))])
        await store.turns.erase_turn("resp_1")
        told = [(turn.id, str(turn.state)) for turn in await store.turns.told(["conv_1"], limit=10)]
        assert told == [("resp_2", "completed"), ("resp_9", "opened")]


class TestListedConversations:
    async def fill(self, store: Store) -> None:
        titles = ["Plum cake", "An apple pie", "PLUMBING", "Pears", ""]
        for number, title in enumerate(titles):
            named = {"title": title} if title else {"topic": "plum"}
            one = Conversation(id=f"conv_{number}", tenant="acme", created_at=100.0 + number, metadata=named)
            await store.conversations.put(one, at=100.0)
        await store.conversations.put(Conversation(id="conv_x", tenant="other", created_at=1.0), at=1.0)

    async def ids(self, store: Store, **asked: Any) -> list[str]:
        return [each.id for each in await store.conversations.page("acme", **asked)]

    async def test_they_come_page_by_page_the_newest_first(self, store: Store) -> None:
        await self.fill(store)
        assert await self.ids(store, limit=3) == ["conv_4", "conv_3", "conv_2"]
        assert await self.ids(store, limit=3, after="conv_2") == ["conv_1", "conv_0"]
        assert await self.ids(store, limit=3, newest_first=False) == ["conv_0", "conv_1", "conv_2"]
        assert await self.ids(store, limit=3, after="conv_3", newest_first=False) == ["conv_4"]

    async def test_a_title_is_found_by_a_part_of_it_whatever_its_case(self, store: Store) -> None:
        await self.fill(store)
        assert await self.ids(store, limit=9, title="plum") == ["conv_2", "conv_0"]
        assert await self.ids(store, limit=1, title="plum") == ["conv_2"]
        assert await self.ids(store, limit=1, title="PLUM", after="conv_2") == ["conv_0"]
        assert await self.ids(store, limit=9, title="quince") == []

    async def test_a_title_is_found_behind_many_others(self, store: Store) -> None:
        for number in range(1_100):
            named = {"title": "needle" if number in (0, 700) else f"hay {number}"}
            one = Conversation(id=f"conv_{number:04}", tenant="acme", created_at=1.0, metadata=named)
            await store.conversations.put(one, at=1.0)
        assert await self.ids(store, limit=2, title="needle") == ["conv_0700", "conv_0000"]
        assert await self.ids(store, limit=1, title="needle") == ["conv_0700"]

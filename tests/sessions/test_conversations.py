"""Conversations by name, and words that are taken back: everywhere, and for good."""

import pytest

from axon.domain.content.item import Item
from axon.domain.session.conversation import Conversation
from axon.errors import DependencyDown, InvalidInput, NotFound
from tests.sessions.world import TENANT, Kept, heard


def item(number: int) -> Item:
    return Item(id=f"msg_hand_{number}", role="user", texts=(f"by hand {number}",))


class TestItems:
    async def test_items_added_by_hand_stand_where_they_were_added(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [item(1)], {})
        await kept.say("a", conversation=talk.id)
        await kept.conversations.add(TENANT, talk.id, [item(2), item(3)])
        assert heard(await kept.say("b", conversation=talk.id)) == "by hand 1 a A by hand 2 by hand 3"
        kept.live.lose_everything()
        assert heard(await kept.open("c", conversation=talk.id)) == "by hand 1 a A by hand 2 by hand 3 b B"

    async def test_items_added_while_a_turn_runs_come_behind_it(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        running = await kept.open("a", conversation=talk.id)
        await kept.conversations.add(TENANT, talk.id, [item(1)])
        await kept.answer(running, "A")
        assert heard(await kept.open("b", conversation=talk.id)) == "a A by hand 1"

    async def test_a_removed_item_is_not_told_again(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [item(1)], {})
        first = await kept.say("a", conversation=talk.id)
        await kept.conversations.remove(TENANT, talk.id, "msg_hand_1")
        await kept.conversations.remove(TENANT, talk.id, first.items[0].id)
        assert [each.text for each in await kept.conversations.items(TENANT, talk.id)] == ["A"]
        assert heard(await kept.say("b", conversation=talk.id)) == "A"

    @pytest.mark.parametrize("lost", [False, True])
    async def test_a_removed_item_is_not_told_to_what_went_on_from_its_conversation(
        self, kept: Kept, lost: bool
    ) -> None:
        talk = await kept.conversations.create(TENANT, [item(1)], {})
        first = await kept.say("a", conversation=talk.id)
        aside = await kept.say("b", previous=first.id)
        assert heard(aside) == "by hand 1 a A"
        await kept.conversations.remove(TENANT, talk.id, "msg_hand_1")
        await kept.conversations.remove(TENANT, talk.id, first.items[0].id)
        if lost:
            kept.live.lose_everything()
        assert heard(await kept.open("c", previous=aside.id)) == "A b B"
        assert heard(await kept.open("d", previous=first.id)) == "A"

    async def test_a_conversation_holds_a_bounded_number_of_items(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        await kept.conversations.add(TENANT, talk.id, [item(number) for number in range(9_999)])
        with pytest.raises(InvalidInput) as full:
            await kept.conversations.add(TENANT, talk.id, [item(10_000), item(10_001)])
        assert full.value.code == "conversation_full"


class TestErasure:
    async def test_an_erased_turn_is_nowhere(self, kept: Kept) -> None:
        turn = await kept.say("secret")
        found = await kept.lookup.find(turn.id)
        assert found is not None
        await kept.erasure.turn(found)
        assert await kept.live.log.read(turn.id, after=0) is None
        stored = await kept.lookup.find(turn.id)
        assert stored is not None
        assert stored.job.purged
        with pytest.raises(NotFound):
            await kept.open("b", previous=turn.id)

    async def test_a_chain_goes_on_without_a_turn_that_was_erased(self, kept: Kept) -> None:
        first = await kept.say("a")
        second = await kept.say("b", previous=first.id)
        third = await kept.say("c", previous=second.id)
        found = await kept.lookup.find(second.id)
        assert found is not None
        await kept.erasure.turn(found)
        assert heard(await kept.open("d", previous=third.id)) == "a A c C"

    async def test_a_chain_goes_on_without_its_first_turn(self, kept: Kept) -> None:
        first = await kept.say("a")
        second = await kept.say("b", previous=first.id)
        third = await kept.say("c", previous=second.id)
        found = await kept.lookup.find(first.id)
        assert found is not None
        await kept.erasure.turn(found)
        for turn in (second, third):
            left = await kept.lookup.find(turn.id)
            assert left is not None
            assert not left.job.purged
        assert heard(await kept.say("d", previous=third.id)) == "b B c C"
        kept.live.lose_everything()
        assert heard(await kept.open("e", previous=third.id)) == "b B c C"

    async def test_a_turn_erased_while_it_runs_leaves_nothing_when_it_ends(self, kept: Kept) -> None:
        running = await kept.open("secret")
        found = await kept.lookup.find(running.id)
        assert found is not None
        await kept.erasure.turn(found)
        view = await kept.live.log.read(running.id, after=0)
        assert view is not None
        assert view.cancelled
        await kept.answer(running, "SECRET", state="cancelled")
        assert await kept.lookup.find(running.id) is None
        await kept.journal.barrier(timeout_s=30.0)
        stored = await kept.store.turns.get(running.id)
        assert stored is not None
        assert (stored.job.purged, stored.tokens) == (True, ())

    async def test_an_erased_conversation_takes_every_word_with_it(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [item(1)], {})
        turns = [await kept.say(text, conversation=talk.id) for text in "ab"]
        running = await kept.open("c", conversation=talk.id)
        await kept.conversations.delete(TENANT, talk.id)
        with pytest.raises(NotFound):
            await kept.conversations.items(TENANT, talk.id)
        with pytest.raises(NotFound):
            await kept.open("d", conversation=talk.id)
        await kept.answer(running, "C")
        await kept.journal.barrier(timeout_s=30.0)
        for turn in (*turns, running):
            stored = await kept.store.turns.get(turn.id)
            assert stored is not None
            assert stored.job.purged
            assert await kept.lookup.in_log(turn.id) is None

    async def test_a_conversation_whose_erasure_failed_can_be_erased_again(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        turn = await kept.say("secret", conversation=talk.id)
        await kept.journal.barrier(timeout_s=30.0)
        kept.journal.stuck = True
        with pytest.raises(DependencyDown):
            await kept.conversations.delete(TENANT, talk.id)
        kept.journal.stuck = False
        await kept.conversations.delete(TENANT, talk.id)
        stored = await kept.store.turns.get(turn.id)
        assert stored is not None
        assert stored.job.purged
        with pytest.raises(NotFound):
            await kept.conversations.get(TENANT, talk.id)

    async def test_a_change_beside_an_erasure_does_not_bring_a_conversation_back(
        self, kept: Kept, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        get = kept.store.conversations.get

        async def slow_get(conversation_id: str) -> Conversation | None:
            found = await get(conversation_id)
            monkeypatch.undo()
            await kept.conversations.delete(TENANT, conversation_id)
            return found

        monkeypatch.setattr(kept.store.conversations, "get", slow_get)
        with pytest.raises(NotFound):
            await kept.conversations.update(TENANT, talk.id, {"a": "b"})
        with pytest.raises(NotFound):
            await kept.conversations.get(TENANT, talk.id)

    async def test_what_went_on_from_an_erased_turn_is_not_told_it_again(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        first = await kept.say("secret", conversation=talk.id)
        second = await kept.say("b", conversation=talk.id)
        aside = await kept.say("c", previous=second.id)
        found = await kept.lookup.find(first.id)
        assert found is not None
        await kept.erasure.turn(found)
        assert heard(await kept.open("d", previous=aside.id)) == "b B c C"

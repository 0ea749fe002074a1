"""What a turn is told of what was said before: all of it, wherever it is by now, or an error; never silently less."""

import asyncio
import itertools
from contextlib import AsyncExitStack

import pytest

from axon.errors import Busy, DependencyDown, NotCompleted, NotFound
from tests.sessions.world import TENANT, Kept, heard


class TestChains:
    async def test_a_turn_is_told_the_whole_chain_without_a_look_into_the_store(self, kept: Kept) -> None:
        first = await kept.say("a")
        second = await kept.say("b", previous=first.id)
        third = await kept.say("c", previous=second.id)
        assert (heard(first), heard(second), heard(third)) == ("", "a A", "a A b B")
        assert kept.turns.num_reads == 0
        assert kept.journal.records  # nothing of it has reached the store

    async def test_it_is_told_the_same_after_quick_memory_was_lost(self, kept: Kept) -> None:
        turn = await kept.say("a")
        for text in "bcd":
            turn = await kept.say(text, previous=turn.id)
        kept.live.lose_everything()
        assert heard(await kept.open("e", previous=turn.id)) == "a A b B c C d D"

    async def test_memory_lost_while_the_journal_is_behind_is_an_error_and_not_a_gap(self, kept: Kept) -> None:
        first = await kept.say("a")
        second = await kept.say("b", previous=first.id)
        kept.live.lose_everything()
        kept.journal.stuck = True
        with pytest.raises(DependencyDown) as behind:
            await kept.open("c", previous=second.id)
        assert behind.value.code == "history_unavailable"
        kept.journal.stuck = False
        assert heard(await kept.open("c", previous=second.id)) == "a A b B"

    async def test_a_store_that_is_away_is_not_missed(self, kept: Kept) -> None:
        first = await kept.say("a")
        kept.turns.away = kept.journal.stuck = True
        second = await kept.say("b", previous=first.id)
        assert heard(await kept.open("c", previous=second.id)) == "a A b B"

    async def test_branches_do_not_hear_each_other(self, kept: Kept) -> None:
        root = await kept.say("a")
        left = await kept.say("left", previous=root.id)
        right = await kept.say("right", previous=root.id)
        assert heard(await kept.open("x", previous=left.id)) == "a A left LEFT"
        assert heard(await kept.open("x", previous=right.id)) == "a A right RIGHT"

    async def test_a_turn_before_that_still_runs_is_waited_for(self, kept: Kept) -> None:
        running = await kept.open("a")
        with pytest.raises(Busy):
            await kept.open("b", previous=running.id, wait_s=0.0)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(kept.open("b", previous=running.id, wait_s=5.0))
            await asyncio.sleep(0)
            await kept.answer(running, "A")
        assert heard(waiting.result()) == "a A"

    @pytest.mark.parametrize("state", ["failed", "cancelled", "expired"])
    async def test_nothing_goes_on_from_a_turn_that_did_not_complete(self, kept: Kept, state: str) -> None:
        failed = await kept.answer(await kept.open("a"), "half", state=state)
        with pytest.raises(NotCompleted):
            await kept.open("b", previous=failed.id)

    async def test_an_answer_whose_end_was_lost_and_then_told_otherwise_is_gone_on_from(self, kept: Kept) -> None:
        first = await kept.say("a")
        await kept.end_again(first, state="cancelled")
        assert heard(await kept.open("b", previous=first.id)) == "a A"

    async def test_an_answer_that_was_cut_off_is_gone_on_from(self, kept: Kept) -> None:
        cut = await kept.answer(await kept.open("a"), "hal", reason="length")
        assert heard(await kept.open("b", previous=cut.id)) == "a hal"

    async def test_a_foreign_turn_is_refused_like_an_unknown_one(self, kept: Kept) -> None:
        own = await kept.say("a")
        told = []
        for tenant, turn_id in (("other", own.id), (TENANT, "resp_unknown")):
            with pytest.raises(NotFound) as refused:
                await kept.histories.of_turn(tenant, turn_id, wait_s=0)
            told.append((refused.value.code, refused.value.message.replace(turn_id, "ID")))
        assert told[0] == told[1]

    async def test_a_chain_may_leave_a_conversation_and_the_conversation_does_not_hear_it(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        first = await kept.say("a", conversation=talk.id)
        second = await kept.say("b", conversation=talk.id)
        aside = await kept.say("aside", previous=first.id)
        again = await kept.say("again", previous=aside.id)
        assert (heard(aside), heard(again)) == ("a A", "a A aside ASIDE")
        kept.live.lose_everything()
        assert heard(await kept.open("x", previous=again.id)) == "a A aside ASIDE again AGAIN"
        assert heard(await kept.open("x", previous=second.id)) == "a A b B"
        assert heard(await kept.open("c", conversation=talk.id)) == "a A b B"


class TestConversations:
    async def test_a_turn_is_told_everything_without_a_look_into_the_store(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        for text in "abc":
            last = await kept.say(text, conversation=talk.id)
        assert heard(last) == "a A b B"
        assert kept.turns.num_reads == 0

    async def test_it_is_told_the_same_after_quick_memory_was_lost(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        for text in "abc":
            await kept.say(text, conversation=talk.id)
            kept.live.lose_everything()
        assert heard(await kept.open("d", conversation=talk.id)) == "a A b B c C"

    async def test_memory_lost_while_the_journal_is_behind_is_an_error_and_not_a_gap(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        await kept.say("a", conversation=talk.id)
        kept.live.lose_everything()
        kept.journal.stuck = True
        with pytest.raises(DependencyDown) as behind:
            await kept.open("b", conversation=talk.id)
        assert behind.value.code == "history_unavailable"

    async def test_one_turn_at_a_time_the_second_waits_or_is_refused(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        running = await kept.open("a", conversation=talk.id)
        with pytest.raises(Busy) as refused:
            await kept.open("b", conversation=talk.id, wait_s=0.0)
        assert refused.value.retryable
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(kept.open("b", conversation=talk.id, wait_s=5.0))
            await asyncio.sleep(0.01)
            await kept.answer(running, "A")
        assert heard(waiting.result()) == "a A"

    async def test_a_running_turn_is_known_even_after_a_flush(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        await kept.open("a", conversation=talk.id)
        kept.live.lose_everything()
        with pytest.raises(Busy):
            await kept.open("b", conversation=talk.id, wait_s=0.0)

    async def test_of_many_at_once_each_is_told_those_that_ended_before_it(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})

        async def ask(number: int) -> str:
            job = await kept.open(f"q{number}", conversation=talk.id, wait_s=30.0)
            await kept.answer(job, f"a{number}")
            return heard(job)

        told = sorted(await asyncio.gather(*map(ask, range(6))), key=len)
        assert [len(each.split()) for each in told] == [0, 2, 4, 6, 8, 10]
        assert all(longer.startswith(shorter) for shorter, longer in itertools.pairwise(told))

    async def test_a_turn_that_was_never_accepted_is_no_part_of_it(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        await kept.say("a", conversation=talk.id)

        async def refused() -> None:
            async with AsyncExitStack() as held:
                await kept.histories.enter(held, TENANT, talk.id, "resp_lost", wait_s=0)
                raise DependencyDown("the queue did not confirm")

        with pytest.raises(DependencyDown):
            await refused()
        assert heard(await kept.say("b", conversation=talk.id)) == "a A"

    @pytest.mark.parametrize("lost", [False, True])
    @pytest.mark.parametrize("ended", [False, True])
    async def test_a_turn_whose_request_was_sent_twice_neither_waits_for_itself_nor_hears_itself(
        self, kept: Kept, lost: bool, ended: bool
    ) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        await kept.say("a", conversation=talk.id)
        twin = await kept.open("b", conversation=talk.id)
        if ended:
            await kept.answer(twin, "B")
        if lost:
            kept.live.lose_everything()
        async with AsyncExitStack() as held:
            history = await kept.histories.enter(held, TENANT, talk.id, twin.id, wait_s=0)
        assert (" ".join(item.text for item in history.items), history.ordinal + 1) == ("a A", twin.ordinal)
        if ended:
            assert heard(await kept.open("c", conversation=talk.id)) == "a A b B"
            async with AsyncExitStack() as held:
                late = await kept.histories.enter(held, TENANT, talk.id, twin.id, wait_s=0)
            assert late == history

    async def test_an_id_that_another_request_got_is_no_part_of_it(self, kept: Kept) -> None:
        """Two requests came at once with one idempotency key; this one's turn has the id, the other's was accepted."""
        talk = await kept.conversations.create(TENANT, [], {})
        await kept.say("a", conversation=talk.id)
        other = await kept.open("elsewhere")
        async with AsyncExitStack() as held:
            await kept.histories.enter(held, TENANT, talk.id, other.id, wait_s=0)
        assert heard(await kept.open("b", conversation=talk.id)) == "a A"
        await kept.answer(other, "ELSEWHERE")

    async def test_an_answer_to_another_request_with_its_id_is_no_part_of_it(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        await kept.say("a", conversation=talk.id)
        other = await kept.open("elsewhere")
        async with AsyncExitStack() as held:
            await kept.histories.enter(held, TENANT, talk.id, other.id, wait_s=0)
        await kept.answer(other, "ELSEWHERE")
        assert heard(await kept.say("b", conversation=talk.id)) == "a A"

    async def test_a_gateway_that_dies_before_acceptance_leaves_no_trace(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        await kept.say("a", conversation=talk.id)
        held = AsyncExitStack()
        await kept.histories.enter(held, TENANT, talk.id, "resp_lost", wait_s=0)
        kept.live.crowds.lose_everything()  # the lock, as it lapses by itself
        assert heard(await kept.say("b", conversation=talk.id)) == "a A"

    async def test_a_cache_that_forgets_lets_no_second_one_in(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        async with AsyncExitStack() as held:
            await kept.histories.enter(held, TENANT, talk.id, "resp_slow", wait_s=0)
            kept.live.cache.lose_everything()
            with pytest.raises(Busy):
                await kept.open("b", conversation=talk.id, wait_s=0.0)
        assert heard(await kept.open("b", conversation=talk.id)) == ""

    async def test_who_lost_the_lock_does_not_release_anothers(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        slow = await kept.histories.lock(talk.id, wait_s=0)
        kept.live.crowds.lose_everything()  # it lapses
        async with await kept.histories.lock(talk.id, wait_s=0):
            async with slow:
                pass
            with pytest.raises(Busy):
                await kept.histories.lock(talk.id, wait_s=0)

    async def test_who_loses_the_lock_does_not_overwrite_what_another_has_said(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        async with AsyncExitStack() as held:
            await kept.histories.enter(held, TENANT, talk.id, "resp_slow", wait_s=0)
            kept.live.lose_everything()
            await kept.say("a", conversation=talk.id)
        assert heard(await kept.say("b", conversation=talk.id)) == "a A"

    async def test_a_failed_turn_has_said_nothing(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        await kept.answer(await kept.open("a", conversation=talk.id), "half", state="failed")
        assert heard(await kept.say("a", conversation=talk.id)) == ""
        kept.live.lose_everything()
        assert heard(await kept.open("b", conversation=talk.id)) == "a A"

    async def test_a_log_that_lost_its_tail_blocks_nobody(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        first = await kept.say("a", conversation=talk.id)
        await kept.journal.barrier(timeout_s=30.0)
        kept.live.log.lose_tail(first.id, keep=0)
        assert heard(await kept.open("b", conversation=talk.id)) == "a A"

    async def test_an_answer_whose_end_was_lost_and_then_told_otherwise_is_heard(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        first = await kept.say("a", conversation=talk.id)
        await kept.end_again(first, state="cancelled")
        found = await kept.lookup.find(first.id, asker=TENANT)
        assert found is not None
        assert found.state == "completed"
        assert heard(await kept.open("b", conversation=talk.id)) == "a A"

    async def test_a_foreign_conversation_is_refused_like_an_unknown_one(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        told = []
        for tenant, name in (("other", talk.id), (TENANT, "conv_unknown")):
            with pytest.raises(NotFound) as refused:
                await kept.histories.peek(tenant, name)
            told.append((refused.value.code, refused.value.message.replace(name, "ID")))
        assert told[0] == told[1]

    async def test_a_chain_is_no_conversation(self, kept: Kept) -> None:
        first = await kept.say("a")
        await kept.say("b", previous=first.id)
        with pytest.raises(NotFound):
            await kept.open("c", conversation=first.id)
        with pytest.raises(NotFound):
            await kept.conversations.items(TENANT, first.id)
        with pytest.raises(NotFound):
            await kept.conversations.add(TENANT, first.id, [])

    async def test_a_foreign_request_neither_waits_for_a_conversations_lock_nor_empties_its_memory(
        self, kept: Kept
    ) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        await kept.say("a", conversation=talk.id)
        async with await kept.histories.lock(talk.id, wait_s=0), AsyncExitStack() as held:
            with pytest.raises(NotFound):
                await kept.histories.enter(held, "other", talk.id, "resp_x", wait_s=0)
            with pytest.raises(NotFound):
                await kept.conversations.add("other", talk.id, [])
            with pytest.raises(NotFound):
                await kept.conversations.remove("other", talk.id, "msg_in_1")
        assert heard(await kept.open("b", conversation=talk.id)) == "a A"
        assert kept.turns.num_reads == 0

    async def test_a_history_too_big_for_quick_memory_is_read_from_the_store(self, kept: Kept) -> None:
        talk = await kept.conversations.create(TENANT, [], {})
        big = "x" * 600_000
        for text in (big, "b"):
            await kept.say(text, conversation=talk.id)
        assert heard(await kept.open("c", conversation=talk.id)) == f"{big} {big.upper()} b B"

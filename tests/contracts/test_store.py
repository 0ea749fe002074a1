"""The store's contract: keys and turns outlive whoever wrote them, and late records change nothing."""

import itertools
from dataclasses import replace

import pytest

from axon.adapters.remote.ports import RemoteStore
from axon.domain.billing.ledger import Ledger
from axon.domain.reply import ChatReply
from axon.domain.times import Attempt, Times
from axon.domain.turn import Turn, TurnState, opened, so_far
from axon.errors import Conflict, DependencyDown
from axon.ports.store import Store
from tests.contracts.backends import StoreBackend
from tests.contracts.builders import make_chunk, make_ended, make_job, make_key


async def test_an_open_store_answers(store: Store) -> None:
    await store.ping()


class TestKeys:
    async def test_a_key_comes_back_as_it_was_added(self, store: Store) -> None:
        key = make_key(expires_at=500.0)
        await store.keys.add(key)
        assert await store.keys.find(key.id) == key

    async def test_an_unknown_key_is_not_found(self, store: Store) -> None:
        assert await store.keys.find("nothing0") is None

    async def test_a_key_is_seen_by_the_next_process(self, stores: StoreBackend, store: Store) -> None:
        await store.keys.add(make_key())
        assert await (await stores.connect()).keys.find("k0000001") == make_key()

    async def test_keys_are_listed_oldest_first(self, store: Store) -> None:
        for number, created_at in enumerate((30.0, 10.0, 20.0)):
            await store.keys.add(make_key(f"k{number}", created_at=created_at))
        assert [key.id for key in await store.keys.all()] == ["k1", "k2", "k0"]

    async def test_an_id_is_given_once(self, store: Store) -> None:
        await store.keys.add(make_key())
        with pytest.raises(Conflict):
            await store.keys.add(make_key(tenant="other"))
        assert await store.keys.find("k0000001") == make_key()

    async def test_of_many_keys_the_revoked_ones_are_told(self, store: Store) -> None:
        await store.keys.add(make_key())
        await store.keys.add(make_key(id="k0000002"))
        asked = ["k0000001", "k0000002", "nothing0"]
        assert await store.keys.revoked(asked) == frozenset()
        await store.keys.revoke("k0000002", at=300.0)
        assert await store.keys.revoked(asked) == {"k0000002"}
        assert await store.keys.revoked([]) == frozenset()

    async def test_a_revoked_key_keeps_its_first_time(self, store: Store) -> None:
        await store.keys.add(make_key())
        assert await store.keys.revoke("k0000001", at=300.0)
        assert await store.keys.revoke("k0000001", at=400.0)
        assert await store.keys.find("k0000001") == make_key(revoked_at=300.0)

    async def test_revoking_an_unknown_key_says_so(self, store: Store) -> None:
        assert not await store.keys.revoke("nothing0", at=300.0)


class TestTurns:
    async def test_a_turn_comes_back_as_it_was_written(self, store: Store) -> None:
        job = replace(make_job(), extra={"later": {"a": [1]}}, reply=ChatReply(model="small"), trace="00-ab-cd-01")
        for turn in (opened(job), replace(make_ended(job), extra={"more": True})):
            await store.turns.apply([turn])
            assert await store.turns.get(job.id) == turn

    async def test_an_unknown_turn_is_none(self, store: Store) -> None:
        assert await store.turns.get("turn_0") is None

    async def test_no_turns_are_no_work(self, store: Store) -> None:
        await store.turns.apply([])

    async def test_records_may_come_in_any_order_and_twice(self, store: Store) -> None:
        job = make_job()
        records = [opened(job), opened(job), make_ended(job), make_ended(job)]
        for number, order in enumerate(itertools.permutations(range(4))):
            turn_id = f"turn_{number}"
            for index in order:
                await store.turns.apply([replace(records[index], id=turn_id)])
            assert await store.turns.get(turn_id) == replace(make_ended(job), id=turn_id)

    async def test_what_was_said_so_far_gives_way_to_more_of_it_and_to_the_end(self, store: Store) -> None:
        job = make_job()
        records = [opened(job), so_far(job, make_chunk(1, 1)), so_far(job, make_chunk(1, 3)), make_ended(job)]
        for number, order in enumerate(itertools.permutations(range(4))):
            turn_id = f"turn_{number}"
            for place, index in enumerate(order):
                await store.turns.apply([replace(records[index], id=turn_id)])
                assert await store.turns.get(turn_id) == replace(records[max(order[: place + 1])], id=turn_id)

    async def test_of_two_ends_the_first_stands(self, store: Store) -> None:
        first = make_ended(make_job())
        await store.turns.apply([first, make_ended(make_job(), at=300.0, state="failed")])
        assert await store.turns.get(first.id) == first

    async def test_a_turn_opened_and_ended_in_one_batch_has_ended(self, store: Store) -> None:
        turn = make_ended(make_job())
        await store.turns.apply([opened(turn.job), turn, opened(turn.job)])
        assert await store.turns.get(turn.id) == turn

    async def test_a_record_that_cannot_be_written_stops_no_other(self, store: Store) -> None:
        if isinstance(store, RemoteStore):
            pytest.skip("what cannot be sent is refused together with what is sent beside it")
        bad_text = replace(opened(make_job("bad_text")), message="\ud800")
        bad_column = replace(opened(make_job("bad_column")), opened_at=None)  # type: ignore[arg-type]
        good = [opened(make_job(f"turn_{number}")) for number in range(3)]
        with pytest.raises(DependencyDown) as refusal:
            await store.turns.apply([good[0], bad_text, good[1], bad_column, good[2]])
        assert refusal.value.code == "record_refused"
        assert [await store.turns.get(turn.id) for turn in good] == good
        assert await store.turns.get("bad_text") is None
        assert await store.turns.get("bad_column") is None

    async def test_a_text_with_nul_and_every_plane_comes_back(self, store: Store) -> None:
        turn = replace(make_ended(make_job()), message="a\x00b é 漢 🦀")
        await store.turns.apply([turn])
        assert await store.turns.get(turn.id) == turn


class TestUnfinished:
    async def test_unfinished_turns_are_counted_by_deployment_and_version(self, store: Store) -> None:
        jobs = [
            make_job(f"turn_{n}", deployment=name, version=name[0]) for n, name in enumerate(("small", "small", "big"))
        ]
        await store.turns.apply([*map(opened, jobs), make_ended(make_job("turn_9", deployment="small", version="s"))])
        counted = {(each.deployment, each.version): each.count for each in await store.turns.count_unfinished()}
        assert counted == {("small", "s"): 2, ("big", "b"): 1}

    async def test_the_oldest_unfinished_turn_of_a_version_says_whose_it_is(self, store: Store) -> None:
        for number, (tenant, created, version) in enumerate(
            (("late", 5.0, "s"), ("first", 2.0, "s"), ("other", 1.0, "t"))
        ):
            job = make_job(f"turn_{number}", tenant=tenant, created=created, deployment="small", version=version)
            await store.turns.apply([opened(job)])
        ended = make_job("turn_9", tenant="gone", created=0.0, deployment="small", version="s")
        await store.turns.apply([make_ended(ended)])
        assert await store.turns.first_unfinished("small", "s") == "first"
        assert await store.turns.first_unfinished("small", "none") is None

    async def test_unfinished_turns_are_listed_oldest_first_up_to_the_limit(self, store: Store) -> None:
        turns = [opened(make_job(f"turn_{number}", created=created)) for number, created in enumerate((3.0, 1.0, 2.0))]
        await store.turns.apply([*turns, make_ended(make_job("over", created=0.0))])
        assert await store.turns.unfinished(limit=10) == [turns[1], turns[2], turns[0]]
        assert await store.turns.unfinished(limit=2) == [turns[1], turns[2]]

    async def test_they_are_read_page_by_page_to_the_last(self, store: Store) -> None:
        turns = [opened(make_job(f"turn_{number}", created=float(number // 2))) for number in range(7)]
        await store.turns.apply(turns)
        found: list[Turn] = []
        after = None
        while page := await store.turns.unfinished(limit=2, after=after):
            found += page
            after = page[-1].opened_at, page[-1].id
        assert found == turns

    async def test_a_turn_that_ended_is_not_among_them(self, store: Store) -> None:
        await store.turns.apply([opened(make_job())])
        await store.turns.apply([make_ended(make_job(), state="expired")])
        assert await store.turns.unfinished(limit=10) == []


class TestPurging:
    async def test_the_turns_that_ended_last_come_without_their_text(self, store: Store) -> None:
        times = Times(90.0, 0.5, "req_1", (Attempt(7, "w"),))
        kept = [
            replace(make_ended(make_job(f"t{number}", retain=bool(number % 2))), ended_at=100.0 + number)
            for number in range(5)
        ]
        kept = [replace(turn, ledger=Ledger(attempts=1, queue_s=0.5, times=times)) for turn in kept]
        await store.turns.apply([*kept, opened(make_job("open"))])
        found = await store.turns.ended(since=101.0, limit=3)
        assert [turn.id for turn in found] == ["t4", "t3", "t2"]
        assert [turn.id for turn in await store.turns.ended(since=104.0, limit=3)] == ["t4"]
        assert all(not turn.tokens and turn.job.purged for turn in found)
        assert found[0].ledger is not None
        assert found[0].ledger.times == times

    async def test_a_purged_turn_keeps_its_usage_and_loses_every_word(self, store: Store) -> None:
        turn = replace(make_ended(make_job(), state="failed"), code="worker_crash", message="secret words")
        turn = replace(turn, ledger=Ledger(queued=3, emitted=2, replayed=7, attempts=2, queue_s=0.5))
        await store.turns.apply([turn])
        assert await store.turns.purge(ended_before=201.0) == 1
        purged = await store.turns.get(turn.id)
        assert purged is not None
        assert (purged.tokens, purged.ends, purged.message, purged.job.prompt_ids) == ((), (), "", ())
        assert (purged.usage, purged.state, purged.code) == (turn.usage, TurnState.FAILED, "worker_crash")
        assert purged.ledger == turn.ledger
        assert (purged.tenant, purged.opened_at, purged.ended_at) == (turn.tenant, turn.opened_at, turn.ended_at)
        assert (purged.job.deployment, purged.job.session) == (turn.job.deployment, turn.job.session)

    async def test_what_is_retained_recent_or_unfinished_stays(self, store: Store) -> None:
        turns = [
            make_ended(make_job("retained", retain=True)),
            make_ended(make_job("recent"), at=900.0),
            opened(make_job("unfinished", created=1.0)),
        ]
        await store.turns.apply(turns)
        assert await store.turns.purge(ended_before=500.0) == 0
        assert [await store.turns.get(turn.id) for turn in turns] == turns

    async def test_a_turn_is_purged_once(self, store: Store) -> None:
        await store.turns.apply([make_ended(make_job(f"turn_{number}")) for number in range(1_200)])
        assert await store.turns.purge(ended_before=201.0) == 1_200
        assert await store.turns.purge(ended_before=201.0) == 0

    async def test_a_late_record_does_not_bring_the_words_back(self, store: Store) -> None:
        turn = make_ended(make_job())
        await store.turns.apply([turn])
        await store.turns.purge(ended_before=201.0)
        await store.turns.apply([opened(turn.job), turn])
        purged = await store.turns.get(turn.id)
        assert purged is not None
        assert purged.tokens == ()

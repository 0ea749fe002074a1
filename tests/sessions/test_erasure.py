"""Words are taken back in an order that lets nothing bring them back, and what failed can be done again."""

from typing import Any

import pytest

from axon.domain.session.erasure import session_mark, turn_mark
from axon.domain.turn import Turn
from axon.errors import DependencyDown
from axon.sessions import erasure
from axon.sessions.lookup import erased_key
from tests.sessions.world import TENANT, Kept


async def found(kept: Kept, turn_id: str) -> Turn:
    turn = await kept.lookup.find(turn_id)
    assert turn is not None
    return turn


async def is_marked(kept: Kept, mark: str) -> bool:
    return await kept.live.cache.get(erased_key(mark)) is not None


async def test_the_tombstone_stands_before_anything_is_waited_for(kept: Kept) -> None:
    """The journal is behind: the erasure fails, and whatever it brings later comes without its words."""
    job = await kept.say("secret")
    turn = await found(kept, job.id)
    kept.journal.stuck = True
    with pytest.raises(DependencyDown):
        await kept.erasure.turn(turn)
    assert await is_marked(kept, turn_mark(job.id))
    assert await kept.lookup.in_log(job.id) is None
    kept.journal.stuck = False
    await kept.journal.barrier(timeout_s=30.0)
    stored = await kept.store.turns.get(job.id)
    assert stored is not None
    assert (stored.job.purged, stored.tokens, stored.job.items) == (True, (), ())


async def test_usage_stays_for_the_bill(kept: Kept) -> None:
    turn = await found(kept, (await kept.say("secret")).id)
    await kept.erasure.turn(turn)
    stored = await kept.store.turns.get(turn.id)
    assert stored is not None
    assert (stored.usage, stored.state, stored.tenant) == (turn.usage, turn.state, TENANT)
    assert stored.usage.output_tokens > 0


async def test_a_turn_is_erased_twice_as_well_as_once(kept: Kept) -> None:
    turn = await found(kept, (await kept.say("secret")).id)
    await kept.erasure.turn(turn)
    once = await kept.store.turns.get(turn.id)
    await kept.erasure.turn(turn)
    assert await kept.store.turns.get(turn.id) == once


async def test_a_turn_that_does_not_stop_in_time_is_hidden_at_once_and_loses_its_words_at_its_end(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "_STOP_S", 0.0)
    job = await kept.open("secret")
    await kept.erasure.turn(await found(kept, job.id))
    view = await kept.live.log.read(job.id, after=0)
    assert view is not None
    assert view.cancelled
    assert await kept.lookup.in_log(job.id) is None
    await kept.answer(job, "SECRET")
    await kept.journal.barrier(timeout_s=30.0)
    stored = await kept.store.turns.get(job.id)
    assert stored is not None
    assert (stored.job.purged, stored.tokens) == (True, ())


async def test_a_log_that_does_not_answer_keeps_no_word_in_the_store(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await found(kept, (await kept.say("secret")).id)

    async def away(*_: Any, **__: Any) -> None:
        raise DependencyDown("away")

    monkeypatch.setattr(kept.live.log, "forget", away)
    await kept.erasure.turn(turn)
    stored = await kept.store.turns.get(turn.id)
    assert stored is not None
    assert stored.job.purged
    assert await kept.lookup.in_log(turn.id) is None


async def test_a_session_takes_all_of_its_turns_and_no_other(kept: Kept) -> None:
    first = await kept.say("a")
    second = await kept.say("b", previous=first.id)
    other = await kept.say("c")
    await kept.erasure.session(first.session)
    assert await is_marked(kept, session_mark(first.session))
    purged = {}
    for job in (first, second, other):
        await kept.journal.barrier(timeout_s=30.0)
        stored = await kept.store.turns.get(job.id)
        assert stored is not None
        purged[job.id] = stored.job.purged
    assert purged == {first.id: True, second.id: True, other.id: False}
    assert await kept.lookup.in_log(other.id) is not None


async def test_a_chain_is_not_erased_with_its_first_turn(kept: Kept) -> None:
    """A chain is named after its first turn: the two marks must not be taken for each other."""
    first = await kept.say("a")
    second = await kept.say("b", previous=first.id)
    await kept.erasure.turn(await found(kept, first.id))
    assert not await is_marked(kept, session_mark(first.session))
    assert not (await found(kept, second.id)).job.purged

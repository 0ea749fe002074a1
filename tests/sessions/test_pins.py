"""A session is answered by one version: ``live`` says which, else its turns do, and else nobody guesses."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from axon.domain.model.adapter import JobAdapter
from axon.domain.moved import Moved
from axon.domain.registry.deployment import MemberState
from axon.domain.session.pin import Known, Pin, with_adapter
from axon.domain.turn import opened
from axon.errors import Conflict, DependencyDown
from axon.sessions.pins import Resolved, SessionPins
from tests.contracts.builders import make_job
from tests.sessions.world import Kept

KEY = "pin_1"
V1, V2, V3 = "small@v1", "small@v2", "small@v3"
READY = MemberState.READY


def known(**states: MemberState) -> Known:
    return Known(states={V1: READY, V2: READY, **{f"small@{label}": state for label, state in states.items()}})


def always(version: str) -> Callable[[], str]:
    return lambda: version


def never() -> str:
    raise AssertionError("a pinned session is not chosen for")


async def resolve(kept: Kept, choose: Callable[[], str] = never, view: Known | None = None, **how: Any) -> Resolved:
    how = {"first": False, **how}
    return await kept.sessions.pins.resolve(KEY, choose=choose, known=view or known(), **how)


async def accepted(kept: Kept, version: str, generation: int = 0, **job: Any) -> None:
    """A turn under the pin, in the journal only."""
    number = len(kept.journal.records) + 1
    job = {"created": kept.sessions.pins._clock.now(), "pin": KEY, **job}
    turn = make_job(f"t{generation}_{number}", version=version, generation=generation, **job)
    await kept.journal.append([opened(turn)])


async def test_the_first_choice_binds_every_later_turn(kept: Kept) -> None:
    assert await resolve(kept, always(V1)) == Resolved(Pin(0, V1))
    assert await resolve(kept) == Resolved(Pin(0, V1))


async def test_first_turns_that_come_at_once_agree(kept: Kept) -> None:
    choices = [always(V1), always(V2)] * 3
    found = await asyncio.gather(*[resolve(kept, choose, first=number < 2) for number, choose in enumerate(choices)])
    assert len({each.pin for each in found}) == 1


async def test_a_turn_that_is_its_own_session_is_pinned_nowhere(kept: Kept) -> None:
    found = await kept.sessions.pins.resolve("", first=False, choose=always(V2), known=known())
    assert found == Resolved(Pin(0, V2))
    await kept.sessions.pins.confirm("", found.pin)
    assert await kept.live.pins.get("") is None
    assert kept.pinned.num_reads == 0


async def test_what_live_has_lost_is_read_behind_the_barrier(kept: Kept) -> None:
    await accepted(kept, V1)
    kept.live.lose_everything()
    assert await resolve(kept) == Resolved(Pin(0, V1))
    assert await kept.live.pins.get(KEY) == Pin(0, V1)


async def test_a_session_named_by_its_own_first_job_is_not_looked_for(kept: Kept) -> None:
    kept.journal.stuck = True
    assert await resolve(kept, always(V2), first=True) == Resolved(Pin(0, V2))
    assert kept.pinned.num_reads == 0


@pytest.mark.parametrize("fault", ["journal", "store"])
async def test_without_the_store_a_session_that_live_does_not_know_is_refused_and_others_go_on(
    kept: Kept, fault: str
) -> None:
    await accepted(kept, V1)
    kept.journal.stuck, kept.pinned.away = fault == "journal", fault == "store"
    with pytest.raises(DependencyDown) as refusal:
        await resolve(kept)
    assert refusal.value.code == "history_unavailable"
    assert refusal.value.retry_after_s
    assert await kept.live.pins.get(KEY) is None
    await kept.live.pins.pin(KEY, Pin(0, V1), ttl_s=60)
    assert await resolve(kept) == Resolved(Pin(0, V1))


@pytest.mark.parametrize(
    ("state", "reason"), [(MemberState.FAILED, "version_failed"), (MemberState.CLOSED, "version_removed")]
)
async def test_a_session_on_a_version_that_is_gone_is_moved_and_told_until_it_is_accepted(
    kept: Kept, state: MemberState, reason: str
) -> None:
    await accepted(kept, V1)
    view = known(v1=state)
    told = Moved(V1, V2, reason)
    assert await resolve(kept, always(V2), view) == Resolved(Pin(1, V2), told)
    found = await resolve(kept, never, view)  # the gateway died before it was accepted
    assert found == Resolved(Pin(1, V2), told)
    await kept.sessions.pins.confirm(KEY, found.pin)
    assert await resolve(kept, never, view) == Resolved(Pin(1, V2))
    assert kept.moves == [reason]


async def test_of_two_who_move_a_session_at_once_the_loser_adopts_the_winners_pin(kept: Kept) -> None:
    await accepted(kept, V1)
    view = Known(states={V1: MemberState.FAILED, V2: READY, V3: READY})
    found = await asyncio.gather(*[resolve(kept, always(version), view) for version in (V2, V3, V2, V3)])
    assert len({each.pin for each in found}) == 1
    assert found[0].pin.generation == 1
    assert kept.moves == ["version_failed"]


@pytest.mark.parametrize("compares", [True, False])
async def test_two_who_have_both_read_the_old_pin_end_up_with_one_unless_a_move_does_not_compare(
    kept: Kept, compares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = Known(states={V1: MemberState.FAILED, V2: READY, V3: READY})
    await kept.live.pins.pin(KEY, Pin(0, V1), ttl_s=60)
    both, moves = asyncio.Barrier(2), kept.live.pins.move

    async def move(key: str, old: Pin, new: Pin, *, ttl_s: float) -> Pin | None:
        await both.wait()
        if not compares:
            await kept.live.pins.drop(key)
            return await kept.live.pins.pin(key, new, ttl_s=ttl_s)
        return await moves(key, old, new, ttl_s=ttl_s)

    monkeypatch.setattr(kept.live.pins, "move", move)
    found = await asyncio.gather(*[resolve(kept, always(version), view) for version in (V2, V3)])
    assert len({each.pin for each in found}) == (1 if compares else 2)


async def test_a_move_that_lost_its_pin_on_the_way_asks_the_store_again(kept: Kept) -> None:
    """Another gateway's move was accepted, and ``live`` forgot it while this one was about to move the session."""
    await accepted(kept, V1)
    view = Known(states={V1: MemberState.FAILED, V2: READY, V3: READY})
    await kept.live.pins.pin(KEY, Pin(0, V1), ttl_s=60)
    moves = kept.live.pins.move

    async def move(*args: Any, **how: Any) -> Pin | None:
        await accepted(kept, V3, generation=1)
        kept.live.lose_everything()
        return await moves(*args, **how)

    object.__setattr__(kept.live.pins, "move", move)
    assert (await resolve(kept, always(V2), view)).pin == Pin(1, V3)


async def test_a_version_without_a_worker_is_waited_for_as_long_as_the_patience_lasts(kept: Kept) -> None:
    await resolve(kept, always(V1))
    view = replace(known(), absent_s={V1: 60.0}, patience_s=60.0)
    assert await resolve(kept, never, view) == Resolved(Pin(0, V1))
    view = replace(view, absent_s={V1: 60.1})
    assert await resolve(kept, always(V1), view) == Resolved(Pin(0, V1))
    assert (await resolve(kept, always(V2), view)).moved == Moved(V1, V2, "no_worker")


async def test_a_session_that_was_idle_for_longer_than_its_pin_lives_begins_anew(kept: Kept) -> None:
    await accepted(kept, V1, generation=2, created=1.0)
    assert await resolve(kept, always(V2)) == Resolved(Pin(3, V2), Moved(V1, V2, "expired"))


async def test_one_that_begins_anew_on_the_same_version_was_not_moved(kept: Kept) -> None:
    await accepted(kept, V1, created=1.0)
    assert await resolve(kept, always(V1)) == Resolved(Pin(1, V1))
    assert kept.moves == []


async def test_a_mark_of_an_earlier_release_is_the_version_that_has_it(kept: Kept) -> None:
    view = replace(known(), marks={"mark-1": V1})
    await accepted(kept, "mark-1", pin="", session="conv_1")
    assert await resolve(kept, never, view, session="conv_1") == Resolved(Pin(0, V1))


async def test_a_pin_under_a_mark_goes_on_under_the_version(kept: Kept) -> None:
    view = replace(known(), marks={"mark-1": V1})
    await kept.live.pins.pin(KEY, Pin(3, "mark-1"), ttl_s=60)
    found = await resolve(kept, never, view)
    assert found == Resolved(Pin(3, V1))
    assert await kept.live.pins.confirm(KEY, found.pin, ttl_s=60) == Pin(3, V1)
    assert kept.moves == []


async def test_a_mark_that_nobody_knows_is_a_move(kept: Kept) -> None:
    await accepted(kept, "mark-9", pin="", session="conv_1")
    found = await resolve(kept, always(V2), session="conv_1")
    assert found == Resolved(Pin(1, V2), Moved("mark-9", V2, "unknown_version"))


async def test_a_view_that_is_not_fresh_refuses_what_it_has_not_heard_of(kept: Kept) -> None:
    await kept.live.pins.pin(KEY, Pin(0, V3), ttl_s=60)
    with pytest.raises(DependencyDown) as refusal:
        await resolve(kept, always(V2), replace(known(), is_fresh=False))
    assert refusal.value.code == "history_unavailable"
    assert await kept.live.pins.get(KEY) == Pin(0, V3)


async def test_a_pin_that_cannot_be_confirmed_fails_no_turn(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise DependencyDown

    monkeypatch.setattr(kept.live.pins, "confirm", away)
    await kept.sessions.pins.confirm(KEY, Pin(0, V1))


async def test_asking_for_another_version_than_the_pinned_one_is_a_conflict(kept: Kept) -> None:
    assert (await resolve(kept, always(V1), asked=V1)).pin == Pin(0, V1)
    assert (await resolve(kept, asked=V1)).pin == Pin(0, V1)
    with pytest.raises(Conflict, match="pinned to small@v1") as refusal:
        await resolve(kept, always(V2), asked=V2)
    assert (refusal.value.code, refusal.value.param) == ("version_pinned", "model")
    moved = await resolve(kept, always(V2), known(v1=MemberState.FAILED), asked=V2)
    assert moved.pin == Pin(1, V2)


async def test_the_sessions_on_a_version_are_counted_behind_the_barrier(kept: Kept) -> None:
    await accepted(kept, V1)
    assert await kept.sessions.pins.count(V1) == 1
    assert await kept.sessions.pins.count(V2) == 0
    kept.journal.stuck = True
    with pytest.raises(DependencyDown):
        await kept.sessions.pins.count(V2)


def with_files(number: int) -> JobAdapter:
    return JobAdapter(name="small:sql", digest=f"{number}" * 64, source="/x")


async def test_a_sessions_turns_say_its_adapters_files_when_live_has_forgotten(kept: Kept) -> None:
    await accepted(kept, V1, adapter=with_files(1))
    view = with_adapter(known(), ["2" * 12, "1" * 12])
    assert await resolve(kept, never, view) == Resolved(Pin(0, f"{V1}:{'1' * 12}"))
    assert await kept.sessions.pins.count(V1) == 1, "a drain waits for it as for one without an adapter"


async def test_first_turns_that_come_at_once_with_other_files_agree(kept: Kept) -> None:
    view = with_adapter(known(), ["2" * 12, "1" * 12])
    choices = [f"{V1}:{'1' * 12}", f"{V1}:{'2' * 12}"] * 3
    found = await asyncio.gather(*[resolve(kept, always(each), view) for each in choices])
    assert len({each.pin for each in found}) == 1
    assert not kept.moves


async def test_an_erased_session_leaves_no_pin(kept: Kept) -> None:
    job = await kept.open("secret")
    [turn] = kept.journal.records
    kept.journal.records = [replace(turn, job=replace(job, pin=KEY))]
    await kept.journal.barrier(timeout_s=30.0)
    await kept.answer(replace(job, pin=KEY), "SECRET")
    await kept.live.pins.pin(KEY, Pin(0, V1), ttl_s=60)
    await kept.erasure.session(job.session)
    assert await kept.live.pins.get(KEY) is None
    assert await kept.store.pinned.last_pin(KEY) is None


def test_a_gateway_keeps_no_pins_of_its_own(kept: Kept) -> None:
    held = [value for value in vars(kept.sessions.pins).values() if isinstance(value, dict | list | set)]
    assert not held
    assert isinstance(kept.sessions.pins, SessionPins)

"""A store that went back in time is settled: counters above what they were, turns ended once, nothing billed twice."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from axon.adapters.backup.database import transaction
from axon.adapters.backup.settling import Settled, settle
from axon.adapters.live.memory.live import open_memory_live
from axon.bootstrap.backups import settle_store
from axon.domain.billing.cost import Rates
from axon.domain.billing.usage import Usage
from axon.domain.failure import Failure
from axon.domain.job import Job
from axon.domain.turn import Turn, TurnState, opened, so_far, supersedes
from axon.errors import Misconfigured
from axon.runtime.clock import FakeClock
from axon.settings import Settings
from tests.backup.places import Place
from tests.contracts.builders import make_chunk, make_ended, make_job

RATES = Rates(prompt=1_000_000, output=7_000_000, currency="EUR")
NOTHING = Usage(prompt_tokens=0, cached_tokens=0, output_tokens=0)


def _settle(place: Place, *, now: float, known: Sequence[str] | None = ()) -> Settled:
    with transaction(place.address) as connection:
        wanted = None if known is None else lambda ids: [each for each in ids if each in known]
        return settle(connection, now=now, known=wanted)


def _with(place: Place, act: Any) -> Any:
    async def run() -> Any:
        async with place.opened() as store:
            return await act(store)

    return asyncio.run(run())


def test_counters_never_go_back(place: Place) -> None:
    """Whatever a store counted before it went back, what it gives out next is above it."""

    async def count(store: Any) -> tuple[int, int]:
        from axon.domain.registry.model import Model

        name = f"model-{time.monotonic_ns()}"
        revision = await store.registry.write(None, Model(name=name, created=1.0), actor="test", at=1.0)
        return await store.terms.take(), revision

    highest = (0, 0)
    for _ in range(5):
        highest = _with(place, count)
    _settle(place, now=1_800_000_000.0)  # a day after, say: the store is an older one by now
    after = _with(place, count)
    assert after[0] > highest[0]
    assert after[1] > highest[1]
    assert after == (1_800_000_000_001, 1_800_000_000_001)
    _settle(place, now=1_700_000_000.0)  # a clock that is behind takes nothing back
    assert _with(place, count) == (1_800_000_000_002, 1_800_000_000_002)


def test_a_turn_that_nobody_knows_is_cancelled_and_billed_nothing(place: Place) -> None:
    job = make_job("turn_running", session="", created=50.0)
    running = so_far(job, make_chunk(1, 5))
    _with(place, lambda store: store.turns.apply([running]))
    assert _settle(place, now=900.0, known=["turn_open"]) == Settled(num_ended=1, num_left=1)

    async def read(store: Any) -> Any:
        return await store.turns.get("turn_running"), await store.turns.get("turn_open")

    ended, left = _with(place, read)
    assert (ended.state, ended.code, ended.ended_at) == (TurnState.CANCELLED, Failure.RESTORED, 900.0)
    assert (ended.usage.total_tokens, ended.tokens, ended.cost) == (0, (), None)
    assert left.state is TurnState.OPENED
    assert _settle(place, now=901.0, known=["turn_open"]) == Settled(num_ended=0, num_left=1)


def test_turns_are_left_to_be_run_again_when_asked(place: Place) -> None:
    assert _settle(place, now=900.0, known=None) == Settled(num_ended=0, num_left=1)
    assert _with(place, lambda store: store.turns.get("turn_open")).state is TurnState.OPENED


def test_many_unfinished_turns_are_settled_page_by_page(place: Place) -> None:
    turns = [opened(make_job(f"open_{n:04d}", created=float(n % 7), session="")) for n in range(450)]
    _with(place, lambda store: store.turns.apply(turns))
    known = [f"open_{n:04d}" for n in range(0, 450, 3)]
    assert _settle(place, now=900.0, known=known) == Settled(num_ended=301, num_left=150)


def test_the_real_end_replaces_the_one_that_a_restore_made_up(place: Place) -> None:
    """The journal may still have the record of a turn's end that the restored store does not know."""
    _settle(place, now=900.0)
    real = make_ended(make_job("turn_open", session=""))
    for _ in range(2):
        _with(place, lambda store: store.turns.apply([real]))
    found = _with(place, lambda store: store.turns.get("turn_open"))
    assert (found.state, found.usage.output_tokens) == (TurnState.COMPLETED, 2)
    made_up = replace(real, state=TurnState.CANCELLED, code=Failure.RESTORED)
    assert supersedes(real, made_up)
    assert not supersedes(made_up, real)
    assert not supersedes(made_up, made_up)
    assert not supersedes(opened(real.job), made_up)


@pytest.mark.parametrize("seed", [1, 2])
def test_both_databases_keep_the_record_that_the_rule_says(place: Place, seed: int) -> None:
    """Records of many turns in any order, late and twice, with two restores in between: the row, and what is billed, is
    that of ``supersedes``, and a real end is there whenever it was written once."""
    chance = random.Random(seed)
    jobs = [make_job(f"any_{n:02d}", tenant="own", session="", price="p", rates=RATES) for n in range(60)]
    kept: dict[str, Turn] = {}
    has_ended: set[str] = set()
    for now in (900.0, 901.0, 902.0):
        for _ in range(4):
            some = [chance.choice(_records(job)) for job in jobs if chance.random() < 0.5]
            _with(place, lambda store, some=some: store.turns.apply(some))
            kept |= {turn.id: turn for turn in some if supersedes(turn, kept.get(turn.id))}
            has_ended |= {turn.id for turn in some if turn.state.terminal}
            rows = {row[0]: row[1:] for row in place.rows("turns", "id", "state", "code", "output_tokens")}
            wanted = {each.id: (each.state, each.code, each.usage.output_tokens) for each in kept.values()}
            assert {turn_id: rows[turn_id] for turn_id in kept} == wanted
        _settle(place, now=now)
        for turn in kept.values():
            if not turn.state.terminal:
                kept[turn.id] = replace(turn, state=TurnState.CANCELLED, code=Failure.RESTORED, usage=NOTHING)
    assert 0 < len(has_ended) < len(kept)

    async def read(store: Any) -> Any:
        found = [await store.turns.get(turn_id) for turn_id in kept]
        return found, await store.usage.sums(since=0.0, until=1000.0, tenant="own")

    found, [billed] = _with(place, read)
    for turn in found:
        assert (turn.state, turn.code, turn.usage) == (kept[turn.id].state, kept[turn.id].code, kept[turn.id].usage)
        assert (turn.code != Failure.RESTORED) == (turn.id in has_ended)
    ends = [_records(turn.job)[-1] for turn in found if turn.id in has_ended]
    assert billed.num_turns == len(kept)
    assert billed.usage.output_tokens == sum(end.usage.output_tokens for end in ends)
    assert billed.costs[0].total_nanos == sum(end.cost.amount.total_nanos for end in ends if end.cost)


def _records(job: Job) -> list[Turn]:
    """What the journal has of a turn, in the order in which it was written."""
    return [opened(job), so_far(job, make_chunk(1, 1)), so_far(job, make_chunk(1, 2)), make_ended(job, num_tokens=3)]


def test_batches_are_given_up_by_their_holders(place: Place) -> None:
    assert place.rows("batches", "holder") == [("gateway-1",)]
    _settle(place, now=900.0)
    taken = _with(place, lambda store: store.batches.take("gateway-2", now=901.0, until=950.0, limit=5))
    assert [batch.id for batch in taken] == ["batch_1"]


def test_whoever_was_signed_in_signs_in_again(place: Place) -> None:
    assert place.rows("web_sessions", "key_id") == [("k0000001",)]
    _settle(place, now=900.0)
    assert place.rows("web_sessions", "key_id") == []


def test_settling_by_the_command_ends_what_an_embedded_server_had(place: Place) -> None:
    assert settle_store(place.settings) == Settled(num_ended=1, num_left=0)


def test_a_store_that_servers_use_is_not_settled(place: Place) -> None:
    async def settled_beside(store: Any) -> None:
        await store.terms.take()  # a connection of a server's
        await asyncio.to_thread(settle_store, place.settings)

    if place.url.startswith("sqlite"):
        assert settle_store(place.settings).num_ended == 1, "a file has a lock of its own"
        return
    with pytest.raises(Misconfigured, match="Servers have 1 connections"):
        _with(place, settled_beside)


async def test_epochs_do_not_come_from_the_store_and_never_go_back() -> None:
    """A worker that was paused before a restore holds an old epoch; a claim after it has a higher one."""
    clock = FakeClock()
    epochs: list[int] = []
    for _ in range(3):  # each time with a live service that knows nothing, as after a loss of everything
        log = open_memory_live(clock, retention_s=600.0).log
        await log.open("turn_1", b"body", reader_ttl_s=None)
        over = 0
        for owner in ("first", "second"):
            claimed = await log.claim("turn_1", owner, over=over)
            assert claimed is not None
            over = claimed.epoch
            epochs.append(claimed.epoch)
        clock.advance(0.01)
    assert epochs == sorted(set(epochs))


def test_a_store_without_tables_is_told_by_what_to_name(tmp_path: Path) -> None:
    (tmp_path / "axon.db").touch()
    settings = Settings(store=f"sqlite:///{tmp_path / 'axon.db'}", data_dir=tmp_path)
    with pytest.raises(Misconfigured, match=r"no tables of Axon's: name another with --store or --data-dir\.$"):
        settle_store(settings)

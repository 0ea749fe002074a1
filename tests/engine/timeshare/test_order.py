"""Whose time slice it is on shared cores, as a rule and as a simulation of steps."""

import math
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.timeshare.order import (
    CREDIT_S,
    LEAST_SLICE_S,
    MOST_OWED_S,
    Claim,
    State,
    begins,
    in_the_way,
    next_slice,
    passes_on,
    raised,
)


def claim(slot: int, had_s: float = 0.0, state: State = State.WAITING) -> Claim:
    return Claim(slot=slot, state=state, had_s=had_s)


def test_of_those_that_wait_the_one_that_had_the_least_is_next() -> None:
    claims = [claim(0, 3.0), claim(1, 2.0), claim(2, 1.0, State.BETWEEN), claim(3, 0.0, State.IDLE)]
    assert next_slice(claims) == claims[1]
    assert next_slice(claims[2:]) is None


def test_an_engine_that_was_idle_or_is_new_is_lifted_to_the_level_less_a_credit() -> None:
    assert begins(claim(0, 1.0, State.IDLE), 10.0) == claim(0, 10.0 - CREDIT_S)
    assert begins(claim(0, 0.0, State.IDLE), 3600.0) == claim(0, 3600.0 - CREDIT_S)
    assert begins(claim(0, 10.5, State.IDLE), 10.0) == claim(0, 10.5)
    assert begins(claim(0, 0.0, State.IDLE), 0.0) == claim(0, 0.0)


def test_an_engine_that_was_not_idle_keeps_its_counter_up_to_a_bound() -> None:
    assert begins(claim(0, 9.5, State.BETWEEN), 10.0) == claim(0, 9.5)
    assert begins(claim(0, 1.0, State.BETWEEN), 10.0) == claim(0, 10.0 - MOST_OWED_S)
    assert begins(claim(0, 99.0, State.BETWEEN), 10.0) == claim(0, 10.0 + MOST_OWED_S)


@pytest.mark.parametrize("level_s", [math.inf, -math.inf, math.nan])
def test_a_level_that_is_no_number_is_forgotten_with_the_next_slice(level_s: float) -> None:
    assert begins(claim(0, 7.0, State.BETWEEN), level_s) == claim(0, 7.0)
    assert raised(level_s, 7.0) == 7.0


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6))
def test_the_level_never_falls(level_s: float, began_s: float) -> None:
    assert raised(level_s, began_s) == max(level_s, began_s)


def test_a_turn_is_passed_on_to_one_that_had_less_but_not_before_its_least_length() -> None:
    mine = claim(0, 1.0, State.HOLDING)
    assert passes_on(mine, LEAST_SLICE_S, 1.0, [mine, claim(1, 1.0)])
    assert not passes_on(mine, LEAST_SLICE_S / 2, 1.0, [mine, claim(1, 1.0)])
    assert not passes_on(mine, LEAST_SLICE_S, 1.0, [mine, claim(1, 1.1)])
    assert not passes_on(mine, 10.0, 1.0, [mine, claim(1, 0.0, State.IDLE)])


def test_in_the_way_are_those_that_go_first_and_did_not_move() -> None:
    mine = claim(1, 5.0)
    holds, waits, later = claim(2, 9.0, State.HOLDING), claim(3, 4.0), claim(4, 6.0)
    others = [holds, waits, later, claim(5, 1.0, State.BETWEEN), claim(6, 1.0, State.IDLE)]
    assert in_the_way(mine, others, [mine, *others]) == {holds, waits}
    moved = [claim(2, 9.5, State.HOLDING), claim(3, 4.0, State.HOLDING)]
    assert in_the_way(mine, others, [mine, *moved]) == frozenset()
    assert in_the_way(mine, [], [mine, *others]) == frozenset()


@dataclass
class Engine:
    """An engine in the simulation: steps that cannot be interrupted, or that can after every piece."""

    slot: int
    pieces: tuple[float, ...]
    weight: float = 1.0
    had_s: float = 0.0
    used_s: float = 0.0
    at: int = 0
    slices: int = 0
    state: State = State.IDLE


@dataclass
class Cores:
    """What the engines of a simulation share."""

    level_s: float = 0.0


def run(engines: list[Engine], until_s: float, cores: Cores | None = None) -> None:
    """All engines always have work; time passes only in pieces of steps. Afterwards all are idle."""
    cores, now = cores or Cores(), 0.0
    while now < until_s:
        for each in engines:
            if each.state is not State.WAITING:
                each.had_s, each.state = (
                    begins(claim(each.slot, each.had_s, each.state), cores.level_s).had_s,
                    State.WAITING,
                )
        claims = [claim(each.slot, each.had_s) for each in engines]
        first = next_slice(claims)
        assert first is not None
        engine, held = next(each for each in engines if each.slot == first.slot), 0.0
        cores.level_s = raised(cores.level_s, engine.had_s)
        engine.slices += 1
        while True:
            held += engine.pieces[engine.at]
            engine.at = (engine.at + 1) % len(engine.pieces)
            mine = replace(first, state=State.HOLDING)
            if not engine.at:
                engine.state = State.BETWEEN
                break
            if passes_on(mine, held, engine.weight, [each for each in claims if each != first]):
                break
        now += held
        engine.had_s += held / engine.weight
        engine.used_s += held
    for each in engines:
        each.state, each.at = State.IDLE, 0


_LENGTHS = st.lists(st.floats(0.0005, 0.03), min_size=1, max_size=12)


@given(_LENGTHS, _LENGTHS, st.sampled_from([0.25, 0.5, 1.0, 2.0]))
def test_engines_that_always_have_work_share_by_weight_whatever_their_steps(
    first: list[float], second: list[float], weight: float
) -> None:
    one, other = Engine(0, tuple(first)), Engine(1, tuple(second), weight=weight)
    run([one, other], until_s=3.0)
    longest = max(sum(first), sum(second) / weight)  # a step that is not passed on
    assert abs(one.used_s - other.used_s / weight) <= longest + LEAST_SLICE_S / weight


_ALONE = st.lists(st.tuples(st.integers(0, 1), st.floats(0.1, 5.0), st.booleans()), max_size=4)


@given(_LENGTHS, _LENGTHS, st.sampled_from([0.25, 0.5, 1.0, 2.0]), st.floats(0.0, 1e5), _ALONE)
def test_whatever_was_before_engines_that_both_have_work_share_by_weight(
    first: list[float], second: list[float], weight: float, level_s: float, alone: list[tuple[int, float, bool]]
) -> None:
    """Each had the cores alone for a while, or was started anew, which sets its counter to nothing."""
    engines = [Engine(0, tuple(first)), Engine(1, tuple(second), weight=weight)]
    cores = Cores(level_s)
    for slot, seconds, is_new in alone:
        if is_new:
            engines[slot].had_s = 0.0
        run([engines[slot]], seconds, cores)
    before = [each.used_s for each in engines]
    run(engines, 3.0, cores)
    one, other = (each.used_s - was for each, was in zip(engines, before, strict=True))
    longest = max(sum(first), sum(second) / weight)
    # The step that ended last before may be owed still, up to its length.
    assert abs(one - other / weight) <= 2 * longest + LEAST_SLICE_S / weight + CREDIT_S + 1e-6


def test_an_hour_alone_is_not_owed_to_an_engine_that_starts_when_the_other_is_idle_for_a_moment() -> None:
    cores, chat, flood = Cores(), Engine(0, (0.5,)), Engine(1, (0.004,) * 12, weight=0.5)
    run([chat], 3600.0, cores)
    chat.pieces = (0.006,)
    run([flood], 0.01, cores)
    chat.used_s = flood.used_s = 0.0
    run([chat, flood], 6.0, cores)
    assert chat.used_s == pytest.approx(4.0, rel=0.1)


@given(st.floats(-1e9, 1e9))
def test_a_wrong_level_costs_an_engine_a_bounded_time(wrong_s: float) -> None:
    cores, one, other = Cores(), Engine(0, (0.006,)), Engine(1, (0.006,))
    run([one, other], 1.0, cores)
    cores.level_s = wrong_s
    one.state = State.BETWEEN
    one.used_s = other.used_s = 0.0
    run([one, other], 10.0, cores)
    assert abs(one.used_s - other.used_s) <= 2 * MOST_OWED_S + 0.02


def test_between_two_tokens_a_flood_gets_no_more_than_the_chat_step_by_its_weight() -> None:
    """Steps of a chat take 6 ms; a batch of the flood takes 48 ms in 12 pieces, at half the weight."""
    chat, flood = Engine(0, (0.006,)), Engine(1, (0.004,) * 12, weight=0.5)
    run([chat, flood], until_s=6.0)
    assert 6.0 / chat.slices < 2 * 0.006
    assert flood.used_s / chat.used_s > 0.45

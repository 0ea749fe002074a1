"""Who runs on a machine that has not room for all: nobody is forgotten, nobody is swapped all the time."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.fleet.replica import Group
from axon.domain.fleet.swapping import Rival, Seat, SwapMemory, SwapRules, seats

A, B, C = Group("a"), Group("b"), Group("c")


def rival(group: Group, *, has: int = 0, work: bool = False, asked: float = 0.0, **changes: object) -> Rival:
    made = Rival(group=group, wanted=1, has=has, num_bytes=1, has_work=work, last_asked=asked)
    return replace(made, **changes)  # type: ignore[arg-type]


def counts(given_seats: Mapping[Group, Seat]) -> dict[Group, int]:
    return {group: seat.count for group, seat in given_seats.items()}


def looked(rivals: list[Rival], memory: SwapMemory, now: float, room: int = 1) -> tuple[dict[Group, int], SwapMemory]:
    found, memory = seats(rivals, memory, room_bytes=room, now=now)
    return counts(found), memory


def test_an_idle_one_makes_room_at_once_for_one_that_is_asked() -> None:
    _, memory = looked([rival(A, has=1)], SwapMemory(), 0.0)
    found, _ = looked([rival(A, has=1), rival(B, work=True)], memory, 6.0)
    assert found == {A: 0, B: 1}


def test_one_that_began_a_moment_ago_stays() -> None:
    _, memory = looked([rival(A, has=1)], SwapMemory(), 0.0)
    found, _ = looked([rival(A, has=1), rival(B, work=True)], memory, 4.0)
    assert found == {A: 1, B: 0}


def test_one_with_work_stays_until_another_has_waited_too_long() -> None:
    both = [rival(A, has=1, work=True), rival(B, work=True)]
    _, memory = looked(both, SwapMemory(), 0.0)
    found, memory = looked(both, memory, 9.0)
    assert found == {A: 1, B: 0}
    found, memory = looked(both, memory, 10.0)
    assert found == {A: 0, B: 1}


def test_of_idle_ones_the_one_that_was_asked_last_stays() -> None:
    idle = [rival(A, has=1, asked=100.0), rival(B, has=1, asked=200.0)]
    _, memory = looked(idle, SwapMemory(), 0.0, room=2)
    found, _ = looked([*idle, rival(C, work=True)], memory, 60.0, room=2)
    assert found == {A: 0, B: 1, C: 1}


def test_a_hot_one_makes_room_for_nobody() -> None:
    _, memory = looked([rival(A, has=1, stays=True)], SwapMemory(), 0.0)
    found, _ = looked([rival(A, has=1, stays=True), rival(B, work=True)], memory, 1000.0)
    assert found == {A: 1, B: 0}


def test_who_has_no_room_is_told_why() -> None:
    both = [rival(A, has=1, work=True), rival(B, work=True)]
    found, memory = seats(both, SwapMemory(), room_bytes=1, now=0.0)
    found, memory = seats(both, memory, room_bytes=1, now=3.0)
    assert found[B].reason == "the machine has no room: it waits for a place, for 3 s now"
    found, _ = seats(both, memory, room_bytes=1, now=30.0)
    assert found[A].reason == "it makes room for another model"


groups = st.builds(lambda number: Group(f"m{number}"), st.integers(0, 11))
rivals = st.lists(
    st.builds(
        Rival,
        group=groups,
        wanted=st.integers(0, 3),
        has=st.integers(0, 2),
        num_bytes=st.integers(1, 4),
        has_work=st.booleans(),
        stays=st.booleans(),
        last_asked=st.floats(0, 1e9),
    ),
    unique_by=lambda each: each.group,
    max_size=12,
)


@given(st.lists(rivals, max_size=8), st.integers(0, 12), st.lists(st.floats(0, 30), min_size=8, max_size=8))
def test_memory_is_never_given_twice_and_who_gets_none_is_told_why(
    looks: list[list[Rival]], room: int, waits: list[float]
) -> None:
    memory, now = SwapMemory(), 0.0
    for each, wait in zip(looks, waits, strict=False):
        now += wait
        found, memory = seats(each, memory, room_bytes=room, now=now)
        assert sum(found[one.group].count * one.num_bytes for one in each if one.group in found) <= room
        assert all(found[one.group].count <= one.wanted for one in each if one.wanted)
        assert all(seat.reason for group, seat in found.items() if not seat.count)


@given(st.integers(1, 4), st.lists(st.sets(st.integers(0, 11)), min_size=90, max_size=90), st.integers(0, 5))
def test_no_more_are_swapped_in_a_minute_than_the_bound(room: int, asked: list[set[int]], max_swaps: int) -> None:
    running, memory, rules = set[Group](), SwapMemory(), SwapRules(max_swaps=max_swaps, min_run_s=0.0, max_wait_s=0.0)
    left: list[float] = []
    for second, wanted in enumerate(asked):
        models = {number: Group(f"m{number}") for number in range(12)}
        looks = [rival(each, has=int(each in running), work=number in wanted) for number, each in models.items()]
        found, memory = seats(looks, memory, room_bytes=room, now=float(second), rules=rules)
        runs = {group for group, seat in found.items() if seat.count}
        left += [float(second)] * len(running - runs)
        running = runs
        assert sum(at > second - 60.0 for at in left) <= max_swaps


@given(st.integers(1, 4), st.integers(5, 12))
def test_everybody_who_waits_runs_in_time(room: int, num_models: int) -> None:
    """All have work all the time: each has a place within as many turns as there are others before it."""
    models = [Group(f"m{number}") for number in range(num_models)]
    running, memory, rules = set[Group](), SwapMemory(), SwapRules(max_swaps=1000)
    last_run = dict.fromkeys(models, 0.0)
    limit_s = (num_models / room + 2) * (rules.max_wait_s + 2)
    for second in range(int(3 * limit_s)):
        looks = [rival(each, has=int(each in running), work=True) for each in models]
        found, memory = seats(looks, memory, room_bytes=room, now=float(second), rules=rules)
        running = {group for group, seat in found.items() if seat.count}
        last_run |= dict.fromkeys(running, float(second))
        assert all(second - at <= limit_s for at in last_run.values())


@given(rivals, st.integers(0, 40))
def test_without_anybody_who_waits_nothing_changes(each: list[Rival], room: int) -> None:
    there = [replace(one, has=min(1, one.has), has_work=False, wanted=1) for one in each]
    fits = [one for one in there if one.has]
    room = max(room, sum(one.num_bytes for one in fits))
    found, memory = seats(fits, SwapMemory(), room_bytes=room, now=0.0)
    assert all(seat.count == 1 for seat in found.values())
    assert memory.swaps == ()

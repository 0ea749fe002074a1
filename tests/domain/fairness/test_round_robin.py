"""Round robin over tenants: nobody waits for more than one item of each other tenant."""

from hypothesis import given
from hypothesis import strategies as st

from axon.domain.fairness.round_robin import RoundRobin

TENANTS = "abcd"


def test_a_tenant_that_comes_goes_next_however_many_another_has_waiting() -> None:
    waiting: RoundRobin[str] = RoundRobin()
    for number in range(50):
        waiting.add("hostile", f"hostile {number}")
    assert waiting.take() == "hostile 0"  # it is being served when the other comes
    waiting.add("other", "other 0")
    assert [waiting.take() for _ in range(3)] == ["other 0", "hostile 1", "hostile 2"]


def test_a_tenant_that_sends_one_after_the_other_takes_turns_with_one_that_sends_many() -> None:
    waiting: RoundRobin[str] = RoundRobin()
    for number in range(4):
        waiting.add("many", f"many {number}")
    taken = []
    for number in range(4):
        waiting.add("one", f"one {number}")
        taken += [waiting.take(), waiting.take()]
    assert sorted(map(str, taken[:4])) == ["many 0", "many 1", "one 0", "one 1"]
    assert len(waiting) == 0


def test_what_is_dropped_is_not_taken() -> None:
    waiting: RoundRobin[str] = RoundRobin()
    waiting.add("a", "a0")
    waiting.add("a", "a1")
    waiting.drop("a", "a0")
    waiting.drop("a", "never there")
    waiting.drop("b", "a1")
    assert (waiting.num_of("a"), waiting.num_of("b"), len(waiting)) == (1, 0, 1)
    assert [waiting.take(), waiting.take()] == ["a1", None]


@given(st.lists(st.one_of(st.sampled_from(TENANTS), st.none()), max_size=80))
def test_each_tenants_items_come_in_order_and_nobody_is_overtaken_twice_in_a_round(moves: list[str | None]) -> None:
    """A letter is an item of that tenant; None takes one."""
    waiting: RoundRobin[tuple[str, int]] = RoundRobin()
    added: dict[str, int] = dict.fromkeys(TENANTS, 0)
    expected: dict[str, list[int]] = {each: [] for each in TENANTS}
    passed: dict[str, list[str]] = {}
    """By tenant that waits: who went since its first item waits."""
    for move in [*moves, *[None] * len(moves)]:
        if move is not None:
            waiting.add(move, (move, added[move]))
            expected[move].append(added[move])
            added[move] += 1
            passed.setdefault(move, [])
            continue
        taken = waiting.take()
        if taken is None:
            assert not any(expected.values())
            continue
        tenant, number = taken
        assert number == expected[tenant].pop(0), "in the order in which they came"
        before = passed.pop(tenant)
        assert all(before.count(other) <= 2 for other in TENANTS), "each other one in this round and the next"
        if expected[tenant]:
            passed[tenant] = []
        for others in passed.values():
            others.append(tenant)
    assert len(waiting) == 0

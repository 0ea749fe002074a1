"""Who is turned away comes back when a place is likely to be free for it, not for the one before it."""

from hypothesis import given
from hypothesis import strategies as st

from axon.admission.stagger import Stagger

moments = st.lists(st.tuples(st.floats(0, 3), st.floats(0.05, 2)), min_size=1, max_size=50)


def test_they_come_back_one_after_the_other() -> None:
    returns = Stagger()
    assert [returns.next_s("acme", 0.5, now=10.0) for _ in range(3)] == [0.5, 1.0, 1.5]
    assert returns.next_s("other", 0.5, now=10.0) == 0.5


def test_promises_of_the_past_hold_nobody_back() -> None:
    returns = Stagger()
    for _ in range(3):
        returns.next_s("acme", 0.5, now=10.0)
    assert returns.next_s("acme", 0.5, now=11.0) == 1.0
    assert returns.next_s("acme", 0.5, now=60.0) == 0.5


def test_nobody_waits_for_a_crowd_that_may_not_come() -> None:
    returns = Stagger()
    waits = [returns.next_s("acme", 1.0, now=0.0) for _ in range(1000)]
    assert waits == 100 * [float(second) for second in range(1, 11)]
    assert returns.next_s("slow", 30.0, now=0.0) == 30.0


@given(moments)
def test_nobody_comes_sooner_than_a_place_gets_free_nor_much_later_than_it_must(
    asks: list[tuple[float, float]],
) -> None:
    returns, now = Stagger(), 0.0
    for passed_s, vacancy_s in asks:
        now += passed_s
        waits = returns.next_s("acme", vacancy_s, now)
        assert vacancy_s - 1e-9 <= waits <= max(10.0, vacancy_s) + 1e-9

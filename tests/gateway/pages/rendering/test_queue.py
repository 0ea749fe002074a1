"""Whose text is rendered next: nobody is passed over for a tenant that took more, and nothing grows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.errors import LimitReached, Overloaded
from axon.gateway.pages.rendering.queue import RenderQueue

TENANTS = "abcd"
MOST_OF_TENANT, MOST = 3, 8


def made() -> RenderQueue[tuple[str, int]]:
    return RenderQueue(max_of_tenant=MOST_OF_TENANT, max_in_all=MOST)


def test_of_one_tenant_one_text_is_rendered_at_a_time() -> None:
    queue = made()
    queue.add("a", ("a", 0))
    queue.add("a", ("a", 1))
    queue.add("b", ("b", 0))
    assert [queue.take(), queue.take(), queue.take()] == [("a", 0), ("b", 0), None]
    queue.done("a", 1.0)
    assert queue.take() == ("a", 1)


def test_a_tenant_with_cheap_texts_goes_before_one_with_costly_texts_until_it_has_taken_as_much() -> None:
    queue, order = made(), []
    for number in range(2):
        queue.add("costly", ("costly", number))
    assert queue.take() == ("costly", 0)
    for number in range(3):
        queue.add("cheap", ("cheap", number))
    queue.done("costly", 1.0)
    while (taken := queue.take()) is not None:
        order.append(taken[0])
        queue.done(taken[0], 1.0 if taken[0] == "costly" else 0.01)
    assert order == ["cheap", "cheap", "cheap", "costly"]


def test_too_many_texts_of_one_tenant_and_of_all_are_refused() -> None:
    queue = made()
    for tenant, number in (("a", 3), ("b", 3), ("c", 2)):
        for each in range(number):
            queue.add(tenant, (tenant, each))
    with pytest.raises(LimitReached, match="3 texts waiting"):
        queue.add("a", ("a", 3))
    with pytest.raises(Overloaded):
        queue.add("c", ("c", 2))  # nobody has more than three
    assert len(queue) == MOST


def test_a_full_queue_takes_a_tenant_with_few_in_place_of_the_newest_of_one_with_many() -> None:
    queue = made()
    for tenant, number in (("a", 2), ("b", 3), ("c", 3)):
        for each in range(number):
            queue.add(tenant, (tenant, each))
    assert [queue.add("d", ("d", 0)), queue.add("d", ("d", 1))] == [("b", 2), ("c", 2)]
    with pytest.raises(Overloaded):
        queue.add("d", ("d", 2))
    assert queue.take_all() == [(tenant, each) for tenant in "abcd" for each in range(2)]


def test_what_is_dropped_is_not_taken() -> None:
    queue = made()
    queue.add("a", ("a", 0))
    queue.add("a", ("a", 1))
    queue.drop("a", ("a", 0))
    queue.drop("b", ("a", 1))
    assert [queue.take(), queue.take(), len(queue)] == [("a", 1), None, 0]


def test_all_can_be_taken_also_those_whose_tenant_is_busy() -> None:
    queue = made()
    for number in range(2):
        queue.add("a", ("a", number))
    queue.add("b", ("b", 0))
    queue.take()
    assert (queue.take_all(), len(queue), queue.take()) == ([("a", 1), ("b", 0)], 0, None)


_ADD = st.tuples(st.just("add"), st.sampled_from(TENANTS), st.just(0.0))
_DONE = st.tuples(st.just("done"), st.sampled_from(TENANTS), st.sampled_from([0.0, 0.01, 0.5, 1.5]))
_DROP = st.tuples(st.just("drop"), st.sampled_from(TENANTS), st.just(0.0))
_TAKE = st.tuples(st.just("take"), st.just(""), st.just(0.0))


@given(st.lists(_ADD | _DONE | _DROP | _TAKE, max_size=120))
def test_each_tenants_texts_go_in_order_one_at_a_time_and_who_took_less_goes_first(
    moves: list[tuple[str, str, float]],
) -> None:
    queue, added = made(), 0
    waiting: dict[str, list[int]] = {each: [] for each in TENANTS}
    since: dict[str, dict[str, float]] = {}
    """By tenant that waits and could go: seconds that each other one was served since."""
    busy: set[str] = set()

    def may_go() -> list[str]:
        return [each for each in TENANTS if waiting[each] and each not in busy]

    for move, tenant, seconds in [*moves, *[("take", "", 0.0)] * len(TENANTS)]:
        if move == "add":
            try:
                displaced = queue.add(tenant, (tenant, added))
                most = max(map(len, waiting.values()))
                waiting[tenant].append(added)
                if displaced is not None:
                    assert displaced[1] == waiting[displaced[0]].pop(), "the newest"
                    assert len(waiting[displaced[0]]) + 1 == most
                    assert most > len(waiting[tenant])
            except LimitReached:
                assert len(waiting[tenant]) == MOST_OF_TENANT
            except Overloaded:
                assert sum(map(len, waiting.values())) == MOST
                assert max(map(len, waiting.values())) <= len(waiting[tenant]) + 1
            added += 1
        elif move == "drop" and waiting[tenant]:
            queue.drop(tenant, (tenant, waiting[tenant].pop()))
        elif move == "done" and tenant in busy:
            queue.done(tenant, seconds)
            busy.remove(tenant)
            for each, served in since.items():
                if each != tenant:
                    served[tenant] = served.get(tenant, 0.0) + seconds
        elif move == "take":
            could = may_go()
            taken = queue.take()
            assert (taken is None) == (not could)
            if taken is not None:
                assert taken[0] in could
                assert taken[1] == waiting[taken[0]].pop(0), "in the order in which they came"
                for other in could:
                    passed = since.get(other, {}).get(taken[0], 0.0)
                    assert other == taken[0] or passed <= 1.5, "nobody is passed over twice for costly texts"
                busy.add(taken[0])
        for each in TENANTS:
            if each not in may_go():
                since.pop(each, None)
            else:
                since.setdefault(each, {})
        assert len(queue) == sum(map(len, waiting.values()))

"""The microbatches of an embedding model: when a batch is due, and whose inputs it takes."""

from collections import Counter
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from axon.engine.encoder.gathering import BatchLimits, Gathering, Input

LIMITS = BatchLimits(max_inputs=4, max_tokens=100, gather_s=0.02)


def an_input(
    number: int, *, at: float = 0.0, tenant: str = "a", seed: int = 0, tokens: int = 5, priority: int = 0
) -> Input:
    ids = [1] * tokens
    return Input(id=str(number), token_ids=ids, request=(tenant, seed), priority=priority, arrived_at=at)


def gathered(*inputs: Input, limits: BatchLimits = LIMITS) -> Gathering:
    gathering = Gathering(limits)
    for each in inputs:
        gathering.add(each)
    return gathering


def test_nothing_is_due_while_nothing_waits() -> None:
    assert gathered().wait_s(0.0) is None


def test_the_inputs_of_a_single_request_never_wait() -> None:
    assert gathered(an_input(1), an_input(2)).wait_s(0.0) == 0.0


def test_inputs_of_several_requests_wait_for_others_until_the_oldest_has_waited_long_enough() -> None:
    gathering = gathered(an_input(1, at=1.0), an_input(2, at=1.015, seed=7))
    assert round(gathering.wait_s(1.015) or 0.0, 6) == 0.005
    assert gathering.wait_s(1.021) == 0.0


def test_a_full_batch_is_due_at_once() -> None:
    assert gathered(*(an_input(number, seed=number) for number in range(4))).wait_s(0.0) == 0.0
    assert gathered(an_input(1, tokens=60), an_input(2, tokens=60, seed=1)).wait_s(0.0) == 0.0


def test_a_batch_with_enough_tokens_is_not_gathered_any_longer() -> None:
    limits = BatchLimits(max_inputs=4, max_tokens=100, enough_tokens=20, gather_s=0.02)
    assert (gathered(an_input(1), an_input(2, seed=1), limits=limits).wait_s(0.0) or 0.0) > 0
    inputs = (an_input(1, tokens=15), an_input(2, seed=1))
    gathering = gathered(*inputs, limits=limits)
    assert gathering.wait_s(0.0) == 0.0
    assert len(gathering.take()) == 2  # it takes all that there is room for


def test_an_input_longer_than_a_batch_goes_alone() -> None:
    gathering = gathered(an_input(1, tokens=300), an_input(2))
    assert [each.id for each in gathering.take()] == ["1"]
    assert [each.id for each in gathering.take()] == ["2"]


def test_a_tenant_with_one_input_is_not_behind_another_with_many() -> None:
    gathering = gathered(*(an_input(number) for number in range(10)), an_input(99, tenant="b"))
    assert "99" in [each.id for each in gathering.take()]


def test_a_higher_tier_goes_first() -> None:
    gathering = gathered(*(an_input(number) for number in range(9)), an_input(99, tenant="b", priority=1))
    assert gathering.take()[0].id == "99"


def test_expired_and_dropped_inputs_are_gone() -> None:
    late = Input(id="1", token_ids=[1], request=("a", 0), deadline=10.0, arrived_at=0.0)
    gathering = gathered(late, an_input(2), an_input(3))
    assert gathering.expired(11.0) == ["1"]
    gathering.drop(["2", "unknown"])
    assert gathering.ids == ["3"]


events = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abc"), st.integers(1, 150), st.integers(-1, 1), st.integers(0, 3)),
        st.tuples(st.just("take")),
        st.tuples(st.just("drop"), st.integers(0, 30)),
        st.tuples(st.just("pass"), st.floats(0, 0.03)),
    ),
    max_size=60,
)


@given(events)
def test_every_input_is_taken_once_within_the_bounds_and_in_its_tenants_order(
    happenings: list[tuple[object, ...]],
) -> None:
    gathering, numbers, now = Gathering(LIMITS), count(), 0.0
    waiting: dict[str, Input] = {}
    for happening in happenings:
        match happening:
            case ("add", str(tenant), int(tokens), int(priority), int(seed)):
                new = an_input(next(numbers), at=now, tenant=tenant, seed=seed, tokens=tokens, priority=priority)
                gathering.add(new)
                waiting[new.id] = new
            case ("drop", int(number)):
                gathering.drop([str(number)])
                waiting.pop(str(number), None)
            case ("pass", float(seconds)):
                now += seconds
            case _:
                batch = gathering.take()
                assert bool(batch) == bool(waiting)
                assert len(batch) <= LIMITS.max_inputs
                assert len(batch) == 1 or sum(len(each.token_ids) for each in batch) <= LIMITS.max_tokens
                for each in batch:
                    earlier = [int(other.id) for other in waiting.values() if _same_line(other, each)]
                    assert int(each.id) == min(earlier)
                    del waiting[each.id]
        wait_s = gathering.wait_s(now)
        assert (wait_s is None) == (not waiting)
        assert wait_s is None or 0.0 <= wait_s <= LIMITS.gather_s + 1e-9  # a sum of floats is rounded
        assert len(gathering) == len(waiting)
        assert sorted(gathering.ids) == sorted(waiting)
        if waiting and len({each.request for each in waiting.values()}) == 1:
            assert wait_s == 0.0


def _same_line(first: Input, second: Input) -> bool:
    return (first.tenant, first.priority) == (second.tenant, second.priority)


@given(st.integers(1, 4), st.integers(1, 4))
def test_tenants_are_served_by_their_weights(first: int, second: int) -> None:
    gathering = Gathering(LIMITS)
    for number in range(400):
        for tenant, weight in (("a", first), ("b", second)):
            gathering.add(
                Input(
                    id=f"{tenant}{number}", token_ids=[1] * 5, request=(tenant, 0), weight=float(weight), arrived_at=0.0
                )
            )
    served = Counter(each.tenant for _ in range(20) for each in gathering.take())
    assert abs(served["a"] * second - served["b"] * first) <= 4 * max(first, second)

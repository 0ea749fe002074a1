"""Whose turn it is: first come, or the tenant served least by its weight."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.engine.protocol.messages import Add
from axon.engine.schedule.policy import Claim, Fair, FirstCome, make_policy
from tests.engine.builders import make_add, make_drawn, make_scheduler
from tests.long import examples

COSTS = (1.0, 2.0)
"""Of a prefilled and of an emitted token."""


def claim(arrival: int, tenant: str = "a", *, weight: float = 1.0, priority: int = 0) -> Claim:
    return Claim(arrival=arrival, tenant=tenant, weight=weight, priority=priority)


def test_first_come_goes_by_arrival_within_a_priority() -> None:
    policy = FirstCome()
    claims = [claim(0, priority=0), claim(1, priority=5), claim(2, priority=0)]
    assert [each.arrival for each in sorted(claims, key=policy.rank)] == [1, 0, 2]


def test_the_tenant_served_least_by_its_weight_goes_first() -> None:
    policy = Fair()
    heavy, light = claim(0, "heavy", weight=4.0), claim(1, "light")
    policy.arrive(heavy)
    policy.arrive(light)
    policy.charge(heavy, prefilled=100, emitted=50)
    policy.charge(light, prefilled=60, emitted=0)
    assert (policy.served("heavy"), policy.served("light")) == (50.0, 60.0)
    assert policy.rank(heavy) < policy.rank(light)


def test_a_cached_token_costs_a_tenth_of_a_computed_one() -> None:
    policy = Fair()
    policy.arrive(one := claim(0, "one"))
    policy.charge(one, prefilled=10, emitted=3, cached=100)
    assert policy.served("one") == pytest.approx(10 + 6 + 10)


def test_what_a_prompt_finds_in_the_cache_is_charged_once_and_cheaply() -> None:
    policy = Fair()
    scheduler = make_scheduler(blocks=40, max_batch_tokens=64, policy=policy)
    scheduler.add(make_add("stays", prompt=[7] * 3, max_tokens=50, tenant="t"))
    served = []
    for id in ("first", "second"):
        scheduler.add(make_add(id, prompt=41, max_tokens=1, tenant="t"))
        before = policy.served("t")
        batch = scheduler.schedule()
        scheduler.settle(batch, make_drawn(*[1] * len(batch.draws)))
        served.append(policy.served("t") - before)
    assert served == pytest.approx([41 + 2 + 3 + 2, 1 + 0.1 * 40 + 2 + 2])


def test_who_returns_from_idling_is_lifted_to_the_least_of_those_here() -> None:
    policy = Fair()
    first, second, late = claim(0, "first"), claim(1, "second"), claim(2, "late")
    policy.arrive(first)
    policy.arrive(second)
    policy.charge(first, prefilled=500, emitted=0)
    policy.charge(second, prefilled=300, emitted=0)
    policy.arrive(late)
    assert policy.served("late") == 300


def test_who_has_not_waited_saves_up_no_more_than_a_lead() -> None:
    """A tenant with a little of its own always running is never idle, nor does it get what others wait for."""
    policy = Fair(lead=100.0)
    little, flood = claim(0, "little"), claim(1, "flood")
    policy.arrive(little)
    policy.arrive(flood)
    policy.charge(flood, prefilled=5000)
    policy.arrive(claim(2, "little"), {"flood"})
    assert policy.served("little") == 4900
    policy.charge(flood, prefilled=5000)
    policy.arrive(claim(3, "little"), {"flood", "little"})
    assert policy.served("little") == 4900, "it waits, and keeps its claim"


def test_who_was_served_more_than_that_stays_where_it_was() -> None:
    policy = Fair()
    here, back = claim(0, "here"), claim(1, "back")
    policy.arrive(here)
    policy.arrive(back)
    policy.charge(back, prefilled=900, emitted=0)
    policy.leave(back)
    policy.arrive(back)
    assert policy.served("back") == 900


def test_on_an_idle_engine_a_newcomer_starts_where_the_last_one_left() -> None:
    policy = Fair()
    last = claim(0, "last")
    policy.arrive(last)
    policy.charge(last, prefilled=70, emitted=0)
    policy.leave(last)
    policy.arrive(claim(1, "new"))
    assert policy.served("new") == 70


def test_tenants_that_went_are_forgotten() -> None:
    policy = Fair()
    stays = claim(0, "stays")
    policy.arrive(stays)
    for index in range(1, 500):
        visitor = claim(index, f"visitor {index}")
        policy.arrive(visitor)
        policy.charge(visitor, prefilled=10, emitted=5)
        policy.charge(stays, prefilled=30, emitted=5)
        policy.leave(visitor)
    assert len(policy._counters) < 5


def test_a_policy_is_chosen_by_name() -> None:
    assert isinstance(make_policy("fair"), Fair)
    assert isinstance(make_policy("first_come"), FirstCome)


def num_of(adds: dict[str, Add], tenant: str) -> int:
    return sum(add.tenant == tenant for add in adds.values())


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 8)), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 8)), min_size=1, max_size=6),
    st.sampled_from([(1.0, 1.0), (1.0, 3.0), (2.0, 0.5)]),
    st.integers(2, 16),
    st.integers(1, 4),
    st.integers(8, 20),
    st.sampled_from([0.0, 10.0, 60.0]),
)
def test_two_backlogged_tenants_are_never_far_apart(
    jobs_f: list[tuple[int, int]],
    jobs_g: list[tuple[int, int]],
    weights: tuple[float, float],
    budget: int,
    slots: int,
    blocks: int,
    lead: float,
) -> None:
    """At no time differs what two backlogged tenants were served, by weight, by more than what can run at once and
    the lead that each may have over the other for its part of the slots."""
    scheduler = make_scheduler(blocks=blocks, max_batch_tokens=budget, max_sequences=slots, policy=Fair(lead=lead))
    jobs, weight_of = {"f": jobs_f, "g": jobs_g}, dict(zip("fg", weights, strict=True))
    adds: dict[str, Add] = {}
    seen: Counter[str] = Counter()
    served = {"f": 0.0, "g": 0.0}
    gaps = [0.0]

    def refill() -> None:
        for tenant in "fg":
            while num_of(adds, tenant) < 2 * slots:
                number = len(seen)
                prompt, max_tokens = jobs[tenant][number % len(jobs[tenant])]
                id = f"{tenant}{number}"
                seen[id] = 0
                adds[id] = make_add(
                    id, prompt=[number] * prompt, max_tokens=max_tokens, tenant=tenant, weight=weight_of[tenant]
                )
                scheduler.add(adds[id])

    for _ in range(120):
        refill()
        batch = scheduler.schedule()
        for span in batch.spans:
            add = adds[span.id]
            prefilled = max(0, min(span.end, len(add.prompt_ids)) - max(span.first, seen[span.id]))
            seen[span.id] = max(seen[span.id], min(span.end, len(add.prompt_ids)))
            cost = COSTS[0] * prefilled + COSTS[1] * (span.draw is not None)
            served[add.tenant] += cost / add.weight
        for emitted in scheduler.settle(batch, make_drawn(*[1] * len(batch.draws))):
            if emitted.finish:
                del adds[emitted.id]
        gaps.append(served["f"] - served["g"])

    longest_prompt = max(prompt for prompt, _ in [*jobs_f, *jobs_g])
    longest_answer = max(answer for _, answer in [*jobs_f, *jobs_g])
    at_once = slots * (COSTS[0] * longest_prompt + COSTS[1] * longest_answer)
    assert max(gaps) - min(gaps) <= sum(at_once / weight + lead for weight in weights) + 1e-6


def test_a_newcomer_is_served_beside_a_tenant_with_a_long_queue() -> None:
    scheduler = make_scheduler(blocks=40, max_sequences=2, max_batch_tokens=16)
    for index in range(50):
        scheduler.add(make_add(f"flood {index}", prompt=[index] * 6, max_tokens=3, tenant="flood"))
    order: list[str] = []
    for step in range(30):
        if step == 5:
            scheduler.add(make_add("newcomer", prompt=3, max_tokens=3, tenant="newcomer"))
        batch = scheduler.schedule()
        order += [
            each.id for each in scheduler.settle(batch, make_drawn(*[1] * len(batch.draws))) if each.finish is not None
        ]
    assert order.index("newcomer") <= 6


def test_a_higher_priority_goes_before_a_lower_one_however_much_its_tenant_was_served() -> None:
    policy = Fair(lead=10.0)
    person, line = (Claim(arrival=0, tenant="people"), Claim(arrival=1, tenant="batch", priority=-1))
    for claim in (person, line):
        policy.arrive(claim)
    policy.charge(person, emitted=1000)
    assert policy.may_overtake(person, line)
    assert not policy.may_overtake(person, Claim(arrival=2, tenant="batch"))
    assert policy.may_overtake(line, person)

"""Which lane next: shares by weight in the long run, whatever the jobs are like, and nobody is starved."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from axon.domain.fairness.share import cost, effective_weight
from axon.domain.job import Job
from axon.domain.tenants.tenant import Tier
from axon.worker.queue.order import FLEX_WAIT_S, Party, Waiting, in_order, score, short
from axon.worker.queue.served import Served
from tests.contracts.builders import make_job


def waiting(tenant: str, *, tier: Tier = Tier.DEFAULT, weight: float = 1.0, **changes: float) -> Waiting:
    lane = f"small/{tier}/{tenant}"
    reserved = changes.pop("reserved", 0.0)
    parties = {tenant: Party(weight=weight, reserved=reserved)}
    return Waiting(lane=lane, tier=tier, parties=parties, held=int(changes.pop("held", 0)), **changes)


def holding(tenant: str, num: int, **changes: Any) -> list[Job]:
    return [make_job(tenant=tenant, **changes) for _ in range(num)]


def tenants(lanes: list[Waiting]) -> list[str]:
    return [next(iter(each.parties)) for each in lanes]


def test_whoever_was_served_least_comes_first() -> None:
    counters = {"a": 300.0, "b": 100.0, "c": 200.0}
    assert tenants(in_order(map(waiting, counters), counters.__getitem__, 100.0)) == ["b", "c", "a"]


def test_slots_that_are_held_count_as_service_to_come() -> None:
    lanes = [waiting("a", held=2), waiting("b", held=1), waiting("c", held=3, weight=4.0)]
    assert tenants(in_order(lanes, lambda _: 0.0, 0.0)) == ["c", "b", "a"]


def test_who_is_not_known_is_at_the_level() -> None:
    unknown = Waiting(lane="small/00", parties={})
    assert score(unknown, lambda _: 1000.0, 40.0) == 40.0


def test_tenants_of_one_lane_have_their_shares_together() -> None:
    both = Waiting(lane="small/00", parties={"a": Party(weight=3.0), "b": Party(weight=1.0)})
    assert score(both, {"a": 100.0, "b": 20.0}.__getitem__, 0.0) == pytest.approx(80.0)


def test_flex_yields_for_a_while() -> None:
    flex, default = waiting("f", tier=Tier.FLEX), waiting("a")
    assert in_order([flex, default], {"f": 0.0, "a": 1e6}.__getitem__, 0.0) == [default, flex]
    old = waiting("f", tier=Tier.FLEX, waited_s=FLEX_WAIT_S)
    assert in_order([default, old], {"f": 0.0, "a": 1e6}.__getitem__, 0.0) == [old, default]


def test_who_holds_less_than_its_part_is_short_and_nobody_else() -> None:
    full = holding("a", 8)
    assert tenants(short([waiting("a"), waiting("b")], full, 8)) == ["b"]
    assert short([waiting("b")], [*holding("a", 4), *holding("b", 4)], 8) == []
    assert tenants(short([waiting("b", weight=3.0)], [*holding("a", 4), *holding("b", 4)], 8)) == ["b"]


def test_a_reserved_slice_is_asked_for_whoever_holds_it() -> None:
    crowd = [job for number in range(8) for job in holding(f"t{number}", 1)]
    assert short([waiting("r")], crowd, 8) == []
    assert tenants(short([waiting("r", reserved=0.25)], crowd, 8)) == ["r"]


def test_flex_takes_no_slot_from_anybody() -> None:
    assert short([waiting("f", tier=Tier.FLEX, waited_s=100.0)], holding("a", 8), 8) == []


@given(st.integers(1, 16), st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.5, 1.0, 3.0])), max_size=6))
def test_taking_for_the_short_ends(num_slots: int, crowd: list[tuple[int, float]]) -> None:
    """However full a worker is, those who are short have their part before there are twice as many as slots."""
    jobs = [job for number, (num, weight) in enumerate(crowd) for job in holding(f"t{number}", num, weight=weight)]
    lanes = [waiting(f"t{number}", weight=weight) for number, (_, weight) in enumerate(crowd)]
    assume(len(jobs) >= num_slots)
    for _ in range(num_slots + 1):
        found = short(lanes, jobs, num_slots)
        if not found:
            return
        [(tenant, party)] = found[0].parties.items()
        jobs += holding(tenant, 1, weight=party.weight)
    raise AssertionError("more than every slot was taken beyond the slots")


@dataclass
class Tenant:
    """Jobs of its own length, one after the other without an end."""

    weight: float = 1.0
    tier: Tier = Tier.DEFAULT
    length: int = 20
    prompt: int = 10
    emitted: int = 0


@dataclass
class Place:
    """A worker: slots that hold a tenant and what is left of its job."""

    num_slots: int
    served: Served = field(default_factory=Served)
    running: list[list[object]] = field(default_factory=list)


def run(crowd: dict[str, Tenant], *, num_places: int, num_slots: int, num_steps: int) -> None:
    """A fleet in which everybody always waits; counters are exchanged every 4 steps."""
    places = [Place(num_slots) for _ in range(num_places)]
    shared: Counter[str] = Counter()
    turn: deque[str] = deque(crowd)
    for step in range(num_steps):
        for place in places:
            while len(place.running) < place.num_slots:
                held = Counter(str(tenant) for tenant, _ in place.running)
                lanes = [
                    waiting(name, tier=crowd[name].tier, weight=crowd[name].weight, held=held[name]) for name in turn
                ]
                [name] = in_order(lanes, place.served.of, place.served.level)[0].parties
                turn.remove(name)
                turn.append(name)
                place.running.append([name, crowd[name].length])
                amount = cost(prefilled=crowd[name].prompt, cached=0, emitted=0)
                place.served.charge(name, amount / effective_weight(crowd[name].weight, crowd[name].tier))
            for slot in place.running:
                tenant = crowd[str(slot[0])]
                tenant.emitted += 1
                slot[1] = int(str(slot[1])) - 1
                place.served.charge(
                    str(slot[0]), cost(prefilled=0, cached=0, emitted=1) / effective_weight(tenant.weight, tenant.tier)
                )
            place.running = [slot for slot in place.running if slot[1]]
            if step % 4 == 0:
                shared.update(place.served.take())
                place.served.learn(shared, active=crowd)


@pytest.mark.parametrize("num_slots", [4, 8])
def test_equal_weights_get_equal_tokens_whatever_their_jobs_are_like(num_slots: int) -> None:
    crowd = {f"t{number}": Tenant(length=5 + 13 * (number % 4), prompt=8) for number in range(20)}
    for tenant in crowd.values():
        tenant.prompt = 0
    run(crowd, num_places=2, num_slots=num_slots, num_steps=8000 // num_slots)
    shares = [tenant.emitted for tenant in crowd.values()]
    jain = sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))
    assert jain >= 0.98


def test_tokens_go_by_weight() -> None:
    crowd = {"a": Tenant(weight=3.0), "b": Tenant()}
    run(crowd, num_places=2, num_slots=8, num_steps=1000)
    assert crowd["a"].emitted / crowd["b"].emitted == pytest.approx(3.0, rel=0.1)


def test_a_tier_counts_as_a_multiple_of_the_weight_and_flex_is_not_starved_for_ever() -> None:
    crowd = {"p": Tenant(tier=Tier.PRIORITY), "d": Tenant()}
    run(crowd, num_places=2, num_slots=6, num_steps=1000)
    assert crowd["p"].emitted / crowd["d"].emitted == pytest.approx(2.0, rel=0.1)

"""Slots are the tenants' by their parts: who is short gets in at once, who yields loses nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axon.domain.fairness.share import Want, fair_slots
from axon.engine.batch import Batch
from axon.engine.schedule.limits.controller import StepLimits
from axon.engine.schedule.policy import Fair, FirstCome
from axon.engine.schedule.scheduler import Scheduler
from axon.engine.schedule.slot_queue import MIN_SERVED_TOKENS
from tests.engine.builders import make_add, make_drawn, make_scheduler
from tests.engine.schedule.pipeline import Pipeline
from tests.long import examples


def step(scheduler: Scheduler) -> Batch:
    batch = scheduler.schedule()
    scheduler.settle(batch, make_drawn(*[9] * len(batch.draws)))
    scheduler.check()
    return batch


def ids(batch: Batch) -> set[str]:
    return {span.id for span in batch.spans}


def make_flooded(*, slots: int = 4, num_flood: int = 6, steps: int = MIN_SERVED_TOKENS, **options: object) -> Scheduler:
    """One tenant has every slot and waits for more."""
    scheduler = make_scheduler(blocks=200, max_sequences=slots, max_batch_tokens=64, **options)  # type: ignore[arg-type]
    for index in range(num_flood):
        scheduler.add(make_add(f"flood {index}", prompt=[index] * 6, max_tokens=100, tenant="flood"))
    for _ in range(steps):
        step(scheduler)
    return scheduler


def test_a_tenant_that_comes_back_is_served_in_the_very_next_step() -> None:
    scheduler = make_flooded()
    scheduler.add(make_add("light", prompt=3, tenant="light"))
    assert ids(step(scheduler)) == {"flood 0", "flood 1", "flood 2", "light"}
    assert scheduler.yielded == 1
    assert scheduler.preemptions == 0


def test_a_tenant_that_comes_while_no_prompt_is_computed_is_served_in_the_first_step_that_computes_one() -> None:
    scheduler = make_flooded()
    scheduler.add(make_add("light", prompt=3, tenant="light"))
    for _ in range(3):  # the controller may give every token of a step to the streams that run
        batch = scheduler.schedule(limits=StepLimits(max_prefill_tokens=0))
        assert "light" not in ids(batch)
        scheduler.settle(batch, make_drawn(*[9] * len(batch.draws)))
    assert ids(step(scheduler)) == {"flood 0", "flood 1", "flood 2", "light"}


def test_it_gets_as_many_slots_as_are_its_part_and_no_more() -> None:
    scheduler = make_flooded()
    for index in range(5):
        scheduler.add(make_add(f"light {index}", prompt=[index] * 3, tenant="light", max_tokens=50))
    assert ids(step(scheduler)) == {"flood 0", "flood 1", "light 0", "light 1"}
    for _ in range(20):
        assert ids(step(scheduler)) == {"flood 0", "flood 1", "light 0", "light 1"}
    assert scheduler.yielded == 2


def test_what_is_reserved_is_taken_from_many_who_have_a_slot_each() -> None:
    scheduler = make_scheduler(blocks=200, max_sequences=4, max_batch_tokens=64)
    for index in range(8):
        scheduler.add(make_add(f"one {index}", prompt=[index] * 6, max_tokens=100, tenant=f"t{index}"))
    for _ in range(MIN_SERVED_TOKENS):
        step(scheduler)
    scheduler.add(make_add("plain", prompt=[50] * 3, tenant="plain"))
    assert "plain" not in ids(step(scheduler))
    for index in range(3):
        scheduler.add(make_add(f"mine {index}", prompt=[60 + index] * 3, tenant="mine", max_tokens=50, reserved=0.5))
    held = ids(step(scheduler))
    assert {id for id in held if id.startswith("mine")} == {"mine 0", "mine 1"}
    for _ in range(20):
        assert ids(step(scheduler)) == held  # those who hold a slot keep it
    assert scheduler.yielded == 2


def test_by_weight_a_part_is_larger() -> None:
    scheduler = make_flooded()
    for index in range(5):
        scheduler.add(make_add(f"heavy {index}", prompt=[index] * 3, tenant="heavy", max_tokens=50, weight=3.0))
    assert ids(step(scheduler)) == {"flood 0", "heavy 0", "heavy 1", "heavy 2"}


def test_what_is_reserved_is_there_in_the_next_step_however_much_its_tenant_was_served() -> None:
    scheduler = make_flooded(policy=Fair(lead=0.0))
    for index in range(4):
        scheduler.add(make_add(f"mine {index}", prompt=[index] * 60, tenant="mine", max_tokens=50, reserved=0.5))
    assert {"mine 0"} <= ids(step(scheduler))
    for _ in range(8):
        step(scheduler)
    assert ids(step(scheduler)) == {"flood 0", "flood 1", "mine 0", "mine 1"}


def test_who_was_served_far_more_takes_no_slot_from_who_was_served_less() -> None:
    scheduler = make_flooded(policy=Fair(lead=20.0))
    scheduler.add(make_add("long", prompt=[7] * 150, max_tokens=1, tenant="greedy"))
    while "long" in ids(step(scheduler)):
        pass
    scheduler.add(make_add("again", prompt=[8] * 5, tenant="greedy"))
    assert "again" not in ids(step(scheduler))


@pytest.mark.parametrize("lag", [0, 1])
def test_who_yields_keeps_its_blocks_and_goes_on_where_it_was(lag: int) -> None:
    scheduler = make_scheduler(blocks=200, max_sequences=2, max_batch_tokens=64)
    pipeline = Pipeline(scheduler, lag)
    prompts = {"flood 0": list(range(30)), "flood 1": list(range(40, 70)), "light": [7, 8, 9]}
    said: dict[str, list[int]] = {id: [] for id in prompts}
    spans: dict[str, list[int]] = {id: [] for id in prompts}
    for count in range(60):
        if count in (0, 12):
            for id in ("flood 0", "flood 1") if count == 0 else ("light",):
                scheduler.add(make_add(id, prompt=prompts[id], max_tokens=3 if id == "light" else 30, tenant=id[:5]))
        batch, emitted = pipeline.step()
        scheduler.check()
        for span in batch.spans:
            spans[span.id].append(len(span.token_ids))
        for each in emitted:
            said[each.id].append(each.token)
    assert said == prompts
    assert scheduler.yielded == 1
    assert sum(spans["flood 1"]) == 59, "nothing is computed twice"
    assert not scheduler.has_work


def test_blocks_that_a_parked_sequence_keeps_are_given_up_before_anybody_is_parked_for_them() -> None:
    scheduler = make_scheduler(blocks=12, max_sequences=2, max_batch_tokens=64)
    for index in range(2):
        scheduler.add(make_add(f"flood {index}", prompt=[index] * 12, max_tokens=12, tenant="flood"))
    for _ in range(3):
        step(scheduler)
    scheduler.add(make_add("light", prompt=[5] * 14, max_tokens=9, tenant="light"))
    step(scheduler)
    assert scheduler.yielded == 1
    assert scheduler.pool.num_used == 12, "four of the first, four of the parked one, four of the light one's"
    while scheduler.has_work:
        step(scheduler)
    assert scheduler.preemptions == 0


def test_a_slot_is_not_taken_from_who_has_just_got_it() -> None:
    scheduler = make_flooded(num_flood=0, steps=0)
    for index in range(4):
        scheduler.add(make_add(f"flood {index}", prompt=[index] * 2, max_tokens=100, tenant="flood"))
    step(scheduler)
    scheduler.add(make_add("light", prompt=3, tenant="light"))
    served = [ids(step(scheduler)) for _ in range(MIN_SERVED_TOKENS)]
    assert ["light" in each for each in served] == [False] * (MIN_SERVED_TOKENS - 2) + [True] * 2


@given(
    slots=st.integers(2, 6),
    steps=st.integers(1, 30),
    earlier=st.integers(0, 3),
    lag=st.integers(0, 1),
)
@settings(max_examples=examples(40), deadline=None)
def test_a_higher_tier_of_another_tenant_takes_its_part_from_a_lower_one_in_the_very_next_step(
    slots: int, steps: int, earlier: int, lag: int
) -> None:
    policy = Fair(lead=16.0)
    scheduler = make_scheduler(blocks=400, max_sequences=slots, max_batch_tokens=64, policy=policy)
    for index in range(earlier):  # what it was served before does not count against it
        scheduler.add(make_add(f"earlier {index}", prompt=[index] * 40, max_tokens=20, tenant="people"))
    for index in range(slots + 3):
        flex = make_add(f"flex {index}", prompt=[9, index], max_tokens=100, ignore_eos=True, tenant="b", priority=-1)
        scheduler.add(flex)
    pipeline = Pipeline(scheduler, lag)
    while any(f"earlier {index}" in scheduler._roster.by_id for index in range(earlier)):
        pipeline.step()
    for _ in range(steps):
        pipeline.step()
    scheduler.add(make_add("person", prompt=[7] * 3, tenant="people"))
    assert "person" in ids(pipeline.step()[0])
    scheduler.check()


def test_lines_of_a_lower_tier_get_on_however_often_they_have_to_yield() -> None:
    scheduler = make_scheduler(blocks=200, max_sequences=2, max_batch_tokens=64)
    for index in range(6):
        flex = make_add(f"flex {index}", prompt=[9, index], max_tokens=20, ignore_eos=True, tenant="b", priority=-1)
        scheduler.add(flex)
    for turn in range(200):
        scheduler.add(make_add(f"person {turn}", prompt=[7] * 3, max_tokens=2, ignore_eos=True, tenant="people"))
        for _ in range(3):
            step(scheduler)
    assert not any(id.startswith("flex") for id in scheduler._roster.by_id)
    assert scheduler.yielded > 20


def test_first_come_takes_no_slot_from_anybody() -> None:
    scheduler = make_flooded(policy=FirstCome())
    scheduler.add(make_add("light", prompt=3, tenant="light"))
    for _ in range(10):
        assert "light" not in ids(step(scheduler))


def test_inside_a_tenant_a_lower_priority_yields_to_a_higher() -> None:
    scheduler = make_flooded(num_flood=3, steps=1)
    scheduler.add(make_add("flex", prompt=MIN_SERVED_TOKENS, max_tokens=100, tenant="flood", priority=-1))
    step(scheduler)
    scheduler.add(make_add("urgent", prompt=4, tenant="flood", priority=1))
    assert ids(step(scheduler)) == {"flood 0", "flood 1", "flood 2", "urgent"}


def test_of_a_tenant_that_yields_the_lowest_priority_goes_first() -> None:
    scheduler = make_scheduler(blocks=200, max_batch_tokens=64)
    for index, priority in enumerate([0, -1, 0, 0]):
        scheduler.add(make_add(str(index), prompt=[index] * 9, max_tokens=99, tenant="flood", priority=priority))
    step(scheduler)
    scheduler.add(make_add("light", prompt=3, tenant="light"))
    assert ids(step(scheduler)) == {"0", "2", "3", "light"}


def test_a_long_prompt_of_another_does_not_keep_a_tenants_first_from_starting() -> None:
    scheduler = make_scheduler(blocks=400, max_batch_tokens=64, max_prefill_tokens=8)
    scheduler.add(make_add("stream", prompt=8, max_tokens=200, tenant="flood"))
    step(scheduler)
    scheduler.add(make_add("long", prompt=[5] * 600, tenant="flood"))
    step(scheduler)
    scheduler.add(make_add("light", prompt=6, tenant="light"))
    assert {span.id: len(span.token_ids) for span in step(scheduler).spans} == {"stream": 1, "long": 2, "light": 6}


crowds = st.lists(
    st.tuples(st.integers(1, 12), st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.0, 0.0, 0.25])),
    min_size=1,
    max_size=5,
)


@given(crowds, st.integers(1, 8), st.integers(0, 1))
@settings(max_examples=examples(80), deadline=None)
def test_slots_come_to_their_parts_within_a_step_for_each_exchange(
    crowd: list[tuple[int, float, float]], slots: int, lag: int
) -> None:
    """Tenants come one after the other, each with as much as it wants from now on."""
    scheduler = make_scheduler(blocks=2000, max_sequences=slots, max_batch_tokens=1000)
    pipeline = Pipeline(scheduler, lag)
    wants: dict[str, tuple[int, float, float]] = {}
    for tenant, (num, weight, reserved) in enumerate(crowd):
        wants[str(tenant)] = num, weight, reserved
        for index in range(num):
            scheduler.add(
                make_add(
                    f"{tenant}/{index}",
                    prompt=[tenant, index] * MIN_SERVED_TOKENS,
                    max_tokens=10_000,
                    ignore_eos=True,
                    tenant=str(tenant),
                    weight=weight,
                    reserved=reserved,
                )
            )
        pipeline.step()
        batch, _ = pipeline.step()
        held = dict.fromkeys(wants, 0)
        for span in batch.spans:
            held[span.id.split("/")[0]] += 1
        parts = fair_slots(
            slots,
            {
                each: Want(
                    held=held[each], waiting=wants[each][0] - held[each], weight=wants[each][1], reserved=wants[each][2]
                )
                for each in wants
            },
        )
        assert sum(held.values()) == min(slots, sum(num for num, _, _ in wants.values()))
        lacking = [each for each in wants if held[each] + 1 <= parts[each] + 1e-9]
        beyond = [each for each in wants if held[each] >= parts[each] + 1 - 1e-9]
        assert not (lacking and beyond), "a tenant is short of what another has beyond its part"
    yielded = scheduler.yielded
    for _ in range(20):
        pipeline.step()
        scheduler.check()
    assert scheduler.yielded == yielded, "a slot goes to and fro"

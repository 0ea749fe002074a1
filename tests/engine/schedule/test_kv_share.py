"""A tenant's sequences hold no more blocks than its share, and nobody else's are touched for it."""

import pytest

from axon.engine.schedule.blocks import BlockPool
from axon.engine.schedule.scheduler import Scheduler
from tests.engine.builders import make_add, make_drawn, make_scheduler


def step(scheduler: Scheduler) -> set[str]:
    batch = scheduler.schedule()
    scheduler.settle(batch, make_drawn(*[9] * len(batch.draws)))
    scheduler.check()
    return {span.id for span in batch.spans}


def run(scheduler: Scheduler, tenant: str, most: int) -> None:
    """To the end, within the share."""
    for _ in range(500):
        if not scheduler.has_work:
            return
        step(scheduler)
        assert scheduler.pool.num_used_by(tenant) <= most
    raise AssertionError("it starves")


def test_a_tenants_sequences_hold_no_more_than_its_share_and_all_end() -> None:
    scheduler = make_scheduler(blocks=40, max_sequences=8, max_batch_tokens=64)
    for index in range(6):
        scheduler.add(make_add(str(index), prompt=[index] * 9, max_tokens=20, tenant="t", kv_share=0.25))
    assert len(step(scheduler)) == 3, "three blocks each"
    run(scheduler, "t", 10)


def test_one_that_would_go_beyond_waits_and_keeps_nobody_else_waiting() -> None:
    scheduler = make_scheduler(blocks=40, max_sequences=8, max_batch_tokens=64)
    for index in range(3):
        scheduler.add(make_add(f"big {index}", prompt=[index] * 14, max_tokens=2, tenant="big", kv_share=0.1))
    scheduler.add(make_add("other", prompt=30, tenant="other"))
    assert step(scheduler) == {"big 0", "other"}


def test_a_sequence_that_grows_beyond_the_share_parks_the_tenants_last_and_no_other() -> None:
    scheduler = make_scheduler(blocks=100, max_sequences=8, max_batch_tokens=64)
    scheduler.add(make_add("other", prompt=4, max_tokens=40, tenant="other"))
    step(scheduler)
    for index in range(2):
        scheduler.add(make_add(str(index), prompt=[index] * 7, max_tokens=20, tenant="t", kv_share=0.04))
    step(scheduler)
    step(scheduler)
    assert step(scheduler) == {"0", "other"}
    assert scheduler.preemptions == 1
    run(scheduler, "t", 4)


def test_a_prompt_that_can_never_fit_into_the_share_is_refused() -> None:
    scheduler = make_scheduler(blocks=40)
    scheduler.add(make_add("long", prompt=17, tenant="t", kv_share=0.1))
    assert [refused.code for refused in scheduler.take_refused()] == ["kv_share_exceeded"]
    assert not scheduler.has_work


def test_an_answer_ends_where_the_share_does() -> None:
    scheduler = make_scheduler(blocks=40, max_batch_tokens=64)
    scheduler.add(make_add("long", prompt=16, max_tokens=50, tenant="t", kv_share=0.125))
    finishes = []
    while scheduler.has_work:
        batch = scheduler.schedule()
        finishes += [each.finish for each in scheduler.settle(batch, make_drawn(*[9] * len(batch.draws)))]
    assert finishes == [None] * 4 + ["length"], "20 tokens in five blocks, and one that is in none"


@pytest.mark.parametrize("kv_share", [0.0, -1.0])
def test_a_share_of_nothing_is_refused(kv_share: float) -> None:
    scheduler = make_scheduler()
    scheduler.add(make_add(kv_share=kv_share))
    assert [refused.code for refused in scheduler.take_refused()] == ["invalid_value"]


def test_choices_that_share_blocks_count_them_once() -> None:
    scheduler = make_scheduler(blocks=40, max_sequences=8, max_batch_tokens=64)
    for choice in range(4):
        scheduler.add(make_add(str(choice), prompt=14, choice=choice, max_tokens=3, tenant="t", kv_share=0.2))
    for _ in range(2):
        served = step(scheduler)
    assert served == {"0", "1", "2", "3"}
    assert scheduler.pool.num_used_by("t") <= 8


def fill_cache(pool: BlockPool, owner: str, num_blocks: int) -> list[int]:
    blocks = pool.take([], num_blocks, owner)
    for block in blocks:
        pool.publish(block, f"{owner} {block}".encode())
    pool.give_back(blocks)
    return blocks


def test_the_cache_of_who_has_most_beyond_its_limit_is_forgotten_first() -> None:
    pool = BlockPool(10, 4)
    oldest = fill_cache(pool, "oldest", 3)
    beyond = fill_cache(pool, "beyond", 4)
    within = fill_cache(pool, "within", 3)
    pool.set_limit("beyond", 2)
    pool.set_limit("within", 3)
    assert set(pool.take([], 2, "new")) <= set(beyond)
    assert set(pool.take([], 2, "new")) <= set(oldest), "then by age, whoever's it is"
    pool.check([[*block] for block in [[b for b, owner in pool._owner_of.items() if owner == "new"]]])
    assert len(within) == 3


def test_of_owners_that_have_no_blocks_nothing_is_remembered() -> None:
    pool = BlockPool(4, 4)
    for index in range(50):
        blocks = pool.take([], 2, str(index))
        pool.set_limit(str(index), 1)
        pool.give_back(blocks)
    assert not pool._limits
    assert not pool._used_by
    assert not pool._owner_of

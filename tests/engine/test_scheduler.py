"""The scheduler's decisions: budget, joining, leaving, parking, refusing."""

from axon.engine.batch import Batch
from axon.engine.scheduler import Scheduler
from tests.engine.builders import make_add, make_scheduler


def step(scheduler: Scheduler, token: int = 99) -> Batch:
    batch = scheduler.schedule()
    scheduler.settle(batch, [token] * len(batch.draws))
    scheduler.check()
    return batch


def lengths(batch: Batch) -> dict[str, int]:
    return {span.id: len(span.token_ids) for span in batch.spans}


def test_a_prompt_longer_than_the_budget_is_computed_in_chunks_and_drawn_from_once() -> None:
    scheduler = make_scheduler(max_batch_tokens=4)
    scheduler.add(make_add(prompt=10))
    batches = [step(scheduler) for _ in range(4)]
    assert [batch.num_tokens for batch in batches] == [4, 4, 2, 1]
    assert [len(batch.draws) for batch in batches] == [0, 0, 1, 1]


def test_a_running_stream_gets_its_token_beside_a_long_prompt() -> None:
    scheduler = make_scheduler(max_batch_tokens=4, blocks=20)
    scheduler.add(make_add("stream", prompt=3, max_tokens=50))
    step(scheduler)
    scheduler.add(make_add("long", prompt=[7] * 20))
    for _ in range(4):
        assert lengths(step(scheduler)) == {"stream": 1, "long": 3}


def test_an_older_prompt_does_not_stall_a_newer_stream() -> None:
    scheduler = make_scheduler(max_batch_tokens=4, blocks=20)
    scheduler.add(make_add("long", prompt=[7] * 14))
    scheduler.add(make_add("stream", prompt=[1], max_tokens=50))
    assert lengths(step(scheduler)) == {"long": 4}
    for _ in range(3):
        step(scheduler)
    assert "stream" in lengths(step(scheduler))


def test_sequences_join_up_to_the_slots_and_in_order() -> None:
    scheduler = make_scheduler(max_sequences=2, blocks=20)
    for id in "abc":
        scheduler.add(make_add(id, prompt=2, max_tokens=2))
    assert list(lengths(step(scheduler))) == ["a", "b"]
    step(scheduler)
    assert list(lengths(step(scheduler))) == ["c"]


def test_a_prefix_of_the_same_tenant_is_not_computed_again() -> None:
    scheduler = make_scheduler(blocks=20)
    scheduler.add(make_add("first", prompt=9, max_tokens=1, tenant="t"))
    assert step(scheduler).num_tokens == 9
    scheduler.add(make_add("second", prompt=9, max_tokens=1, tenant="t"))
    assert step(scheduler).num_tokens == 1
    scheduler.add(make_add("third", prompt=9, max_tokens=1, tenant="other"))
    assert step(scheduler).num_tokens == 9


def test_the_last_known_token_is_computed_even_if_its_block_is_cached() -> None:
    scheduler = make_scheduler(blocks=20)
    scheduler.add(make_add("first", prompt=8, max_tokens=1))
    step(scheduler)
    scheduler.add(make_add("second", prompt=8, max_tokens=1))
    assert step(scheduler).num_tokens == 4


def test_without_blocks_the_newest_sequence_is_parked_and_comes_back() -> None:
    scheduler = make_scheduler(blocks=4)
    scheduler.add(make_add("old", prompt=[1] * 7, max_tokens=8))
    scheduler.add(make_add("new", prompt=[2] * 7, max_tokens=8))
    finished: list[str] = []
    for _ in range(40):
        batch = scheduler.schedule()
        for emitted in scheduler.settle(batch, [5] * len(batch.draws)):
            finished += [emitted.id] * (emitted.finish is not None)
        scheduler.check()
    assert finished == ["old", "new"]
    assert scheduler.preemptions >= 1
    assert not scheduler.has_work


def test_cached_blocks_are_evicted_before_a_sequence_is_parked() -> None:
    scheduler = make_scheduler(blocks=4)
    scheduler.add(make_add("first", prompt=[1] * 12, max_tokens=1))
    step(scheduler)
    assert scheduler.pool.num_cached == 3
    scheduler.add(make_add("second", prompt=[2] * 12, max_tokens=4))
    while scheduler.has_work:
        step(scheduler)
    assert scheduler.preemptions == 0


def test_a_prompt_that_can_never_fit_is_refused() -> None:
    scheduler = make_scheduler(blocks=2, block_size=4)
    scheduler.add(make_add("long", prompt=8))
    assert [refused.code for refused in scheduler.take_refused()] == ["context_length_exceeded"]
    assert not scheduler.has_work


def test_an_empty_prompt_and_a_finished_replay_are_refused() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_add("empty", prompt=[]))
    scheduler.add(make_add("done", output=[7, 8], max_tokens=2))
    assert [refused.code for refused in scheduler.take_refused()] == ["invalid_value", "invalid_value"]


def test_an_end_token_stops_unless_it_is_ignored() -> None:
    scheduler = make_scheduler(eos_ids=frozenset({9}))
    scheduler.add(make_add("stops"))
    scheduler.add(make_add("goes on", ignore_eos=True))
    scheduler.add(make_add("own stop", stop_ids=(8,)))
    emitted = scheduler.settle(scheduler.schedule(), [9, 9, 8])
    assert [(each.id, each.finish) for each in emitted] == [("stops", "stop"), ("goes on", None), ("own stop", "stop")]


def test_max_tokens_counts_replayed_tokens() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_add(output=[5, 6], max_tokens=3))
    batch = scheduler.schedule()
    assert [draw.position for draw in batch.draws] == [2]
    assert [each.finish for each in scheduler.settle(batch, [7])] == ["length"]


def test_the_models_length_ends_a_choice() -> None:
    scheduler = make_scheduler(max_model_len=7)
    scheduler.add(make_add(prompt=5, max_tokens=100))
    finishes = [scheduler.settle(scheduler.schedule(), [1])[0].finish for _ in range(2)]
    assert finishes == [None, "length"]


def test_an_abort_frees_the_blocks_of_running_and_waiting_sequences() -> None:
    scheduler = make_scheduler(max_sequences=1)
    scheduler.add(make_add("running", prompt=3))
    scheduler.add(make_add("waiting", prompt=3))
    step(scheduler)
    scheduler.abort(["running", "waiting", "unknown"])
    scheduler.check()
    assert not scheduler.has_work
    assert scheduler.pool.num_used == 0


def test_a_sequence_aborted_between_schedule_and_settle_emits_nothing() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_add("a", prompt=3))
    scheduler.add(make_add("b", prompt=3))
    batch = scheduler.schedule()
    scheduler.abort(["a"])
    assert [(each.id, each.token) for each in scheduler.settle(batch, [1, 2])] == [("b", 2)]
    scheduler.check()


def test_an_id_added_again_starts_over() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_add("a", prompt=3))
    step(scheduler)
    scheduler.add(make_add("a", prompt=[8, 9]))
    assert [span.token_ids for span in step(scheduler).spans] == [(8, 9)]

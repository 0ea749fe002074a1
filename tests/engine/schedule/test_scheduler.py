"""The scheduler's decisions: budget, joining, leaving, parking, refusing."""

import pytest

from axon.engine.batch import Batch
from axon.engine.schedule.scheduler import Scheduler
from tests.engine.builders import make_add, make_drawn, make_scheduler
from tests.engine.schedule.pipeline import Pipeline


def step(scheduler: Scheduler, token: int = 99) -> Batch:
    batch = scheduler.schedule()
    scheduler.settle(batch, make_drawn(*[token] * len(batch.draws)))
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
        for emitted in scheduler.settle(batch, make_drawn(*[5] * len(batch.draws))):
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
    scheduler.add(make_add("stops", prompt=3))
    scheduler.add(make_add("goes on", prompt=3, ignore_eos=True))
    scheduler.add(make_add("own stop", prompt=3, stop_ids=(8,)))
    emitted = scheduler.settle(scheduler.schedule(), make_drawn(9, 9, 8))
    assert [(each.id, each.finish) for each in emitted] == [("stops", "stop"), ("goes on", None), ("own stop", "stop")]


def test_max_tokens_counts_replayed_tokens() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_add(output=[5, 6], max_tokens=3))
    batch = scheduler.schedule()
    assert [draw.position for draw in batch.draws] == [2]
    assert [each.finish for each in scheduler.settle(batch, make_drawn(7))] == ["length"]


def test_the_models_length_ends_a_choice() -> None:
    scheduler = make_scheduler(max_model_len=7)
    scheduler.add(make_add(prompt=5, max_tokens=100))
    finishes = [scheduler.settle(scheduler.schedule(), make_drawn(1))[0].finish for _ in range(2)]
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
    assert [(each.id, each.token) for each in scheduler.settle(batch, make_drawn(1, 2))] == [("b", 2)]
    scheduler.check()


def test_an_id_added_again_starts_over() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_add("a", prompt=3))
    step(scheduler)
    scheduler.add(make_add("a", prompt=[8, 9]))
    assert [span.token_ids for span in step(scheduler).spans] == [(8, 9)]


def test_a_prompt_is_prefilled_in_small_chunks_while_a_stream_runs() -> None:
    scheduler = make_scheduler(max_batch_tokens=16, max_prefill_tokens=5, blocks=40)
    scheduler.add(make_add("stream", prompt=3, max_tokens=50))
    step(scheduler)
    scheduler.add(make_add("long", prompt=[7] * 40))
    chunks = [lengths(step(scheduler)) for _ in range(8)]
    assert all(chunk["stream"] == 1 for chunk in chunks)
    assert [chunk["long"] for chunk in chunks] == [5, 6, 6, 6, 6, 6, 5, 1]


def test_without_streams_a_prompt_takes_the_whole_budget() -> None:
    scheduler = make_scheduler(max_batch_tokens=16, max_prefill_tokens=5, blocks=40)
    scheduler.add(make_add("long", prompt=[7] * 40))
    assert lengths(step(scheduler)) == {"long": 16}


def test_cached_prompt_tokens_are_reported_once_with_the_first_token() -> None:
    scheduler = make_scheduler(blocks=20)
    scheduler.add(make_add("first", prompt=10, max_tokens=2))
    scheduler.add(make_add("second", prompt=10, max_tokens=2))
    cached: dict[str, list[int]] = {"first": [], "second": []}
    while scheduler.has_work:
        batch = scheduler.schedule()
        for emitted in scheduler.settle(batch, make_drawn(*[50] * len(batch.draws))):
            cached[emitted.id].append(emitted.cached)
    assert cached == {"first": [0, 0], "second": [8, 0]}


def test_a_replay_reports_its_prompt_as_cached_but_not_its_output() -> None:
    scheduler = make_scheduler(blocks=20)
    scheduler.add(make_add("first", prompt=6, max_tokens=8))
    while scheduler.has_work:
        step(scheduler)
    scheduler.add(make_add("again", prompt=6, output=[99] * 6, max_tokens=8))
    batch = scheduler.schedule()
    assert batch.spans[0].first == 8
    assert [each.cached for each in scheduler.settle(batch, make_drawn(99))] == [6]


def test_the_next_turn_finds_the_answer_of_the_last_one_cached() -> None:
    scheduler = make_scheduler(blocks=20)
    scheduler.add(make_add("turn 1", prompt=6, max_tokens=7))
    answer: list[int] = []
    while scheduler.has_work:
        batch = scheduler.schedule()
        answer += [
            emitted.token for emitted in scheduler.settle(batch, make_drawn(*[30 + len(answer)] * len(batch.draws)))
        ]
    scheduler.add(make_add("turn 2", prompt=[*range(1, 7), *answer, 70, 71, 72]))
    [span] = scheduler.schedule().spans
    assert span.first == 12, "6 of the prompt and 6 of the answer, the last of which was never computed"


def num_computed(scheduler: Scheduler, lag: int) -> tuple[int, int]:
    """Tokens computed until the end, and the most blocks that were used at once."""
    pipeline = Pipeline(scheduler, lag)
    num_tokens = most_used = 0
    while scheduler.has_work:
        batch, _ = pipeline.step()
        num_tokens += batch.num_tokens
        most_used = max(most_used, scheduler.pool.num_used)
        scheduler.check()
    return num_tokens, most_used


@pytest.mark.parametrize("lag", [0, 1])
@pytest.mark.parametrize("budget", [512, 24])
@pytest.mark.parametrize(("prompt", "again"), [(100, 4), (97, 1), (112, 16), (10, 10)])
def test_four_choices_compute_the_full_blocks_of_their_prompt_once(
    prompt: int, again: int, budget: int, lag: int
) -> None:
    """Cold, all four at once, whole and in chunks: only what stands in the last block is computed for each choice."""
    scheduler = make_scheduler(blocks=80, block_size=16, max_batch_tokens=budget, max_sequences=8)
    for choice in range(4):
        scheduler.add(make_add(str(choice), prompt=prompt, choice=choice, max_tokens=1))
    assert num_computed(scheduler, lag)[0] == prompt + 3 * again


def test_four_choices_hold_the_blocks_of_their_prompt_once() -> None:
    scheduler = make_scheduler(blocks=80, block_size=16, max_batch_tokens=512, max_sequences=8)
    for choice in range(4):
        scheduler.add(make_add(str(choice), prompt=100, choice=choice, max_tokens=8))
    assert num_computed(scheduler, 0) == (100 + 3 * 4 + 4 * 7, 6 + 4)


def test_choices_whose_first_one_is_aborted_do_its_work_themselves() -> None:
    scheduler = make_scheduler(blocks=80, block_size=16, max_batch_tokens=24, max_sequences=8)
    for choice in range(4):
        scheduler.add(make_add(str(choice), prompt=100, choice=choice, max_tokens=1))
    assert lengths(step(scheduler)) == {"0": 24}
    scheduler.abort(["0"])
    assert num_computed(scheduler, 0)[0] == 100 - 16 + 2 * 4, "the first block is cached"


def test_a_block_of_another_model_version_is_not_found() -> None:
    hashes = []
    for version in ("v1", "v2"):
        scheduler = make_scheduler(blocks=20, version=version)
        scheduler.add(make_add(prompt=9))
        hashes.append(scheduler._roster.by_id["a"].full_hashes(8))
    assert set(hashes[0]).isdisjoint(hashes[1])


def test_an_expired_sequence_is_given_up_between_steps() -> None:
    scheduler = make_scheduler(blocks=20, max_sequences=1)
    scheduler.add(make_add("running", deadline=10.0, max_tokens=50))
    scheduler.add(make_add("waiting", deadline=10.0))
    scheduler.add(make_add("patient", deadline=99.0))
    assert lengths(scheduler.schedule(9.9)) == {"running": 5}
    assert lengths(scheduler.schedule(10.0)) == {"patient": 5}
    assert [(each.id, each.code) for each in scheduler.take_refused()] == [
        ("running", "deadline_exceeded"),
        ("waiting", "deadline_exceeded"),
    ]
    scheduler.check()


def test_a_higher_priority_goes_first() -> None:
    scheduler = make_scheduler(max_sequences=1)
    scheduler.add(make_add("low", max_tokens=1))
    scheduler.add(make_add("high", max_tokens=1, priority=1))
    assert [list(lengths(step(scheduler))) for _ in range(2)] == [["high"], ["low"]]


def test_without_blocks_the_newest_sequence_of_the_most_served_tenant_is_parked() -> None:
    scheduler = make_scheduler(blocks=6, max_batch_tokens=30)
    scheduler.add(make_add("greedy old", prompt=[1] * 7, max_tokens=9, tenant="greedy"))
    scheduler.add(make_add("greedy new", prompt=[2] * 7, max_tokens=9, tenant="greedy"))
    step(scheduler)
    scheduler.add(make_add("modest", prompt=[3] * 7, max_tokens=9, tenant="modest", weight=4.0))
    seen = [set(lengths(step(scheduler))) for _ in range(3)]
    assert seen[0] == {"greedy old", "greedy new", "modest"}
    assert seen[-1] == {"greedy old", "modest"}


def test_ends_are_banned_until_there_are_enough_tokens() -> None:
    scheduler = make_scheduler(eos_ids=frozenset({9}))
    scheduler.add(make_add(min_tokens=2, stop_ids=(7,), max_tokens=9))
    banned = [step(scheduler).draws[0].banned_ids for _ in range(3)]
    assert banned == [(7, 9), (7, 9), ()]


def test_an_ignored_end_is_not_banned() -> None:
    scheduler = make_scheduler(eos_ids=frozenset({9}))
    scheduler.add(make_add(min_tokens=2, ignore_eos=True, max_tokens=9))
    assert step(scheduler).draws[0].banned_ids == ()


def test_the_draws_of_a_penalised_sequence_carry_one_and_the_same_prompt() -> None:
    scheduler = make_scheduler(blocks=20)
    scheduler.add(make_add(prompt=3, repetition_penalty=1.1, max_tokens=9))
    first, second = (step(scheduler).draws[0].prompt_ids for _ in range(2))
    assert first is second
    assert len(first) == 3


def test_only_a_penalty_makes_a_draw_carry_tokens() -> None:
    scheduler = make_scheduler(blocks=20)
    scheduler.add(make_add("plain", prompt=3))
    scheduler.add(make_add("presence", prompt=3, presence_penalty=0.5))
    scheduler.add(make_add("repetition", prompt=3, repetition_penalty=1.1))
    step(scheduler, 42)
    draws = step(scheduler).draws
    assert [(draw.prompt_ids, draw.output_ids) for draw in draws] == [((), ()), ((), (42,)), ((1, 2, 3), (42,))]

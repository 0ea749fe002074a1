"""Guesses come from what stands before, cost no more than they are worth, and change no token."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.engine.batch import Batch, Drawn
from axon.engine.schedule.draft import Drafter
from axon.engine.schedule.limits.controller import NO_DRAFTS, StepLimits
from axon.engine.schedule.scheduler import Scheduler
from tests.engine.builders import make_add, make_scheduler

CHEAP = 0.05


def test_what_followed_the_same_tokens_the_last_time_is_guessed() -> None:
    ids = [1, 2, 3, 7, 1, 2, 3, 8, 9, 5, 1, 2, 3]
    assert Drafter().draft(ids, price=0.2, most=8) == [8, 9]


def test_the_longer_likeness_counts_more() -> None:
    ids = [4, 2, 3, 6, 1, 2, 3, 7, 1, 1, 2, 3, 5, 0, 4, 2, 3]
    assert Drafter().draft(ids, price=0.4, most=8) == [6]


def test_what_never_came_before_is_not_guessed_at() -> None:
    assert Drafter().draft(list(range(50)), price=CHEAP, most=8) == []


@pytest.mark.parametrize(("price", "expected"), [(NO_DRAFTS, 0), (0.6, 0), (0.4, 1), (0.2, 2), (0.1, 3)])
def test_a_guess_is_made_while_its_chance_to_be_right_is_over_its_price(price: float, expected: int) -> None:
    """One is right in two at first; the second in four, the third in eight."""
    ids = [1, 2, 3, 4, 5, 6, 7, 1, 2]
    assert len(Drafter().draft(ids, price=price, most=8)) == expected


def test_there_are_never_more_than_there_is_room_for() -> None:
    ids = [1, 2, 3, 4, 5, 6, 7, 1, 2]
    assert Drafter().draft(ids, price=0.1, most=1) == [3]
    assert Drafter().draft(ids, price=0.1, most=0) == []


def test_who_is_right_guesses_more_and_who_is_wrong_stops_for_a_while() -> None:
    ids = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2]
    right, wrong = Drafter(), Drafter()
    for _ in range(20):
        right.learn(num_drafted=2, num_accepted=2)
        wrong.learn(num_drafted=2, num_accepted=0)
    assert len(right.draft(ids, price=0.4, most=8)) > 4
    assert wrong.draft(ids, price=0.4, most=8) == []
    asked = 0
    while not wrong.draft(ids, price=0.4, most=8):
        asked += 1
        assert asked < 200, "it never tries again"


def at_price(price: float) -> StepLimits:
    return StepLimits(max_prefill_tokens=24, draft_price=price)


class Words:
    """A model whose next token depends on the two before it: it repeats itself, but not for ever."""

    def __init__(self, salt: int, num_words: int) -> None:
        self._salt, self._num_words = salt, num_words
        self._said: dict[str, list[int]] = {}

    def run(self, batch: Batch) -> list[Drawn]:
        drawn: list[Drawn] = []
        for span in batch.spans:
            ids = [*self._said.setdefault(span.id, [])[: span.first], *span.token_ids]
            self._said[span.id] = ids
            for place in range(len(span.draws), 0, -1):
                drawn.append(Drawn(self._next(ids[: len(ids) - place + 1])))
        return drawn

    def _next(self, ids: Sequence[int]) -> int:
        return hash((self._salt, len(ids) // 9, *ids[-2:])) % self._num_words


def run(scheduler: Scheduler, model: Words, prices: Sequence[float]) -> dict[str, list[int]]:
    """All to the end, the prices one after the other and round again."""
    said: dict[str, list[int]] = {}
    steps = 0
    while scheduler.has_work:
        batch = scheduler.schedule(limits=at_price(prices[steps % len(prices)]))
        for emitted in scheduler.settle(batch, model.run(batch)):
            said.setdefault(emitted.id, []).append(emitted.token)
        scheduler.check()
        steps += 1
        assert steps < 2000
    return said


@given(
    prompts=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=12), min_size=1, max_size=4),
    lengths=st.lists(st.integers(1, 40), min_size=4, max_size=4),
    blocks=st.integers(14, 40),
    prices=st.lists(st.sampled_from([NO_DRAFTS, 0.3, CHEAP]), min_size=1, max_size=5),
    salt=st.integers(0, 50),
)
def test_guessing_changes_no_token(
    prompts: list[list[int]], lengths: list[int], blocks: int, prices: list[float], salt: int
) -> None:
    def said(prices: Sequence[float]) -> dict[str, list[int]]:
        scheduler = make_scheduler(blocks=blocks, block_size=4, max_batch_tokens=24, eos_ids=frozenset({3}))
        for index, prompt in enumerate(prompts):
            # Tenants share no blocks, so that the model has seen each sequence from its beginning.
            scheduler.add(make_add(str(index), prompt=prompt, max_tokens=lengths[index], tenant=str(index)))
        return run(scheduler, Words(salt, 4), prices)

    assert said(prices) == said([NO_DRAFTS])


def test_guesses_that_are_right_save_steps() -> None:
    def num_steps(price: float) -> int:
        scheduler = make_scheduler(blocks=40, max_batch_tokens=24)
        scheduler.add(make_add("a", prompt=[1, 2, 3, 4] * 4, max_tokens=60))
        steps = 0
        while scheduler.has_work:
            batch = scheduler.schedule(limits=at_price(price))
            drawn = [Drawn(draw.position % 4 + 1) for draw in batch.draws]
            scheduler.settle(batch, drawn)
            steps += 1
        assert (scheduler.drafting.num_accepted.total() > 0) == (price < NO_DRAFTS)
        assert scheduler.drafting.num_accepted.total() <= scheduler.drafting.num_drafted.total()
        return steps

    assert num_steps(CHEAP) < num_steps(NO_DRAFTS) / 2


def test_guesses_take_no_block_that_another_sequence_needs() -> None:
    """The fifth block is that of the sequence which comes to its ninth token first."""
    scheduler = make_scheduler(blocks=5, block_size=4, max_batch_tokens=24, max_sequences=2)
    for id in "ab":
        scheduler.add(make_add(id, prompt=[1, 2, 1, 2, 1, 2, 1], max_tokens=4, tenant=id))
    limits = at_price(NO_DRAFTS)
    while scheduler.has_work:
        batch = scheduler.schedule(limits=limits)
        scheduler.settle(batch, [Drawn((draw.position + 1) % 2 + 1) for draw in batch.draws])
        scheduler.check()
        limits = at_price(CHEAP)
        for sequence in scheduler._roster.running:
            for _ in range(30):
                sequence.drafter.learn(num_drafted=8, num_accepted=8)
    assert scheduler.drafting.num_drafted.total() > 0
    assert scheduler.preemptions <= 1, "a guess has parked somebody"


def follow(drafter: Drafter, ids: list[int], first: int = 1) -> list[float]:
    """What it hopes for as the tokens come one by one."""
    return [drafter.follow(ids, end) for end in range(first, len(ids) + 1)]


def test_following_learns_what_drafts_would_bring_without_drafting() -> None:
    repeating, changing = [1, 2, 3, 4, 5] * 8, [n * n % 97 for n in range(40)]
    hopes = follow(Drafter(), repeating)
    assert hopes[:7] == [0.0] * 7, "it has guessed nothing yet, or not been right yet"
    assert hopes[-1] > 0.9
    assert max(follow(Drafter(), [*range(40)])) == 0.0
    drafter = Drafter()
    follow(drafter, repeating)
    for _ in range(6):  # what it knows by heart goes on otherwise each time
        follow(drafter, repeating := [*repeating, 1, 2, 90 + len(repeating), 91 + len(repeating)], len(repeating))
    assert drafter.follow(repeating, len(repeating)) == 0.0
    assert max(follow(Drafter(), changing)) <= 1.0


def test_tokens_that_drafts_were_compared_with_are_not_counted_twice() -> None:
    ids = [1, 2, 3, 4, 5] * 8
    told, alone = Drafter(), Drafter()
    for drafter in (told, alone):
        follow(drafter, ids[:20])
    told.learn(num_drafted=4, num_accepted=4)
    before, alone_before = told.follow(ids, 20), alone.follow(ids, 20)
    assert told.follow(ids, 24) == before
    assert alone.follow(ids, 24) > alone_before, "it learns by itself"
    assert told.follow(ids, 25) > before


def test_while_drafts_are_too_dear_it_learns_from_the_tokens_that_come() -> None:
    """Nothing would ever be tried above a price of one half, the chance of a draft of which nothing is known."""
    drafter, ids = Drafter(), [1, 2, 3, 4, 5] * 8
    drafted = [drafter.draft(ids[:end], price=0.8, most=8) for end in range(6, len(ids))]
    assert drafted[0] == [], "it has not been right yet"
    assert drafted[-1], "it has been right all the time"
    wrong = Drafter()
    for end in range(4, 200, 4):
        ids = [each for start in range(0, end, 4) for each in (1, 2, start + 10, start + 11)]
        assert wrong.draft([*ids, 1, 2], price=0.8, most=8) == []


def test_where_many_tokens_must_have_occurred_before_it_learns_from_drafts_alone() -> None:
    drafter, ids = Drafter(), []
    for number in range(50):
        ids += [1, 2]
        assert drafter.draft(ids, price=0.4, most=8, least_match=8) == [], "what followed those two was never the same"
        ids += [100 + number, 200 + number]
    ids += ids[:10]
    assert drafter.draft(ids, price=0.4, most=8, least_match=8) == [102]


def test_it_goes_on_in_the_place_where_it_has_been_right() -> None:
    """Of few symbols every three have stood in many places: the latest of them is often another one."""
    cycle = [1, 2, 1, 1, 2, 2, 1, 2, 1, 2, 2, 2, 1, 1, 1, 2, 1, 1]
    ids, drafter, num_wrong = cycle * 8, Drafter(), 0
    for end in range(2 * len(cycle), len(ids)):
        drafted = drafter.draft(ids[:end], price=0.7, most=1)
        num_wrong += bool(drafted) and drafted != ids[end : end + 1]
    assert drafted
    assert num_wrong <= 1, "before it has found its place"


def test_what_came_long_ago_while_nothing_was_drafted_is_forgotten() -> None:
    drafter, ids = Drafter(), [1, 2, 3, 4, 5] * 80
    drafter.draft(ids[:10], price=0.6, most=8)
    ids += [each for number in range(100) for each in (1, 2, 1000 + number, 2000 + number)]
    assert drafter.draft([*ids, 1, 2], price=0.6, most=8) == []


@pytest.mark.parametrize("follows", [True, False])
def test_tokens_that_a_grammar_forces_can_be_left_out_of_what_it_learns(follows: bool) -> None:
    drafter, ids = Drafter(), [1, 2, 3, 4, 5] * 8
    drafted = [drafter.draft(ids[:end], price=0.8, most=8, follows=follows) for end in range(6, len(ids))]
    assert any(drafted) is follows

"""A job's ledger: whatever was lost on the way, it sums to the bill, and tells what was done."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axon.domain.billing.ledger import Ledger
from axon.domain.log.chunk import Chunk
from axon.domain.sampling import Sampling
from axon.domain.turn import TurnState, ended, opened
from axon.engine.protocol.messages import Emitted
from axon.ports.queue import Delivery
from axon.runtime.clock import FakeClock
from axon.text.tokenizer import ByteTokenizer
from axon.worker.job.running import Running
from axon.worker.job.tally import Tally
from tests.contracts.builders import make_job

MAX_TOKENS = 30


@dataclass
class Work:
    """A job under way: its log, its clock, and what engines have really computed for it."""

    choices: int = 1
    cached: int = 0
    num_prompts: int = 1
    clock: FakeClock = field(default_factory=FakeClock)
    log: list[Chunk] = field(default_factory=list)
    num_computed: int = 0
    epoch: int = 0

    def __post_init__(self) -> None:
        self.job = replace(
            make_job(sampling=Sampling(max_tokens=MAX_TOKENS), choices=self.choices * self.num_prompts),
            more_prompts=((5,) * 4, (6,) * 5)[: self.num_prompts - 1],
            created=self.clock.now(),
        )

    def claim(self, lost: Running | None = None) -> Running:
        """A new attempt from the log; ``lost`` is the one before, where it was made by the same worker."""
        attempted, self.epoch = bool(self.epoch), self.epoch + 1
        delivery = Delivery(tag=1, lane=self.job.lane, body=b"", redelivered=False)
        running = Running(
            job=self.job, delivery=delivery, epoch=self.epoch, tokenizer=ByteTokenizer(), clock=self.clock
        )
        running.replay(self.log, attempted=attempted)
        if lost is not None:
            running.take_over(lost)
        for choice in running.absent:
            running.enter(choice, str(choice.index))
        return running

    def compute(self, running: Running, choice: int, num_tokens: int) -> None:
        """So many steps of a choice."""
        mine = running.choices[choice]
        for _ in range(num_tokens):
            if running.terminal is not None or mine.reason:
                return
            first = mine.sequence_id is not None
            if first:  # its prompt and what it came with, once for each time it comes in
                self.num_computed += len(self.job.prompt_of(choice)) + len(mine.token_ids) - self.cached
                mine.sequence_id = None
            self.num_computed += 1
            self.clock.advance(1.0)
            finish = "length" if len(mine.token_ids) + 1 == MAX_TOKENS else None
            running.push(mine, Emitted("", 97 + choice, finish, cached=self.cached if first else 0))

    def tell(self, running: Running, most: int | None = None) -> None:
        """What the log gets of it."""
        chunk = running.pending()
        if chunk is None:
            return
        if most is not None and not chunk.terminal:
            chunk = chunk.until(chunk.first + most - 1)
        if chunk.tokens or chunk.terminal:
            self.log.append(chunk)
            running.sent = chunk.last

    def end(self, running: Running) -> Ledger:
        """The ledger of the turn, which must sum to its bill."""
        self.tell(running)
        turn = ended(opened(self.job), tuple(self.log), at=self.clock.now())
        assert turn.ledger is not None
        assert turn.ledger.billed == turn.usage.total_tokens == self.job.num_prompt_tokens + len(turn.tokens)
        assert turn.ledger.emitted == len(turn.tokens)
        whole_s = self.clock.now() - self.job.created
        assert turn.ledger.whole_s == pytest.approx(whole_s)
        assert running.whole().ledger == self.log[-1].ledger, "the store and the log have the same"
        return turn.ledger


attempts = st.lists(
    st.tuples(st.lists(st.integers(0, 6), min_size=6, max_size=6), st.integers(0, 8), st.booleans()), max_size=5
)
"""Of each: tokens of each choice, how many of them the log gets, and whether only the engine is lost."""


@given(attempts, st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (2, 3)]), st.integers(0, 3), st.booleans())
def test_whatever_is_lost_on_the_way_the_bill_is_the_prompt_and_what_was_emitted_once(
    history: list[tuple[list[int], int, bool]], asked: tuple[int, int], cached: int, is_cancelled: bool
) -> None:
    """``asked``: choices of each prompt, and prompts."""
    work = Work(asked[0], cached, asked[1])
    choices = work.job.choices
    work.clock.advance(2.5)
    running = work.claim()
    num_lost_here = 0
    for tokens, num_told, engine_only in history:
        for choice in range(choices):
            work.compute(running, choice, tokens[choice])
        work.tell(running, num_told)
        work.clock.advance(7.0)
        num_lost_here += engine_only
        running = work.claim(running if engine_only else None)
    if is_cancelled:
        work.compute(running, 0, 3)
        running.end(TurnState.CANCELLED)
    else:
        for choice in range(choices):
            work.compute(running, choice, MAX_TOKENS)
    ledger = work.end(running)
    assert ledger.queue_s >= 2.5
    assert ledger.computed <= work.num_computed
    if num_lost_here == len(history):  # every attempt was seen from near by
        assert ledger.computed == work.num_computed
        assert ledger.attempts == len(history) + 1
    begun = {token.choice for chunk in work.log for token in chunk.tokens}
    assert ledger.prefilled + ledger.cached >= sum(len(work.job.prompt_of(choice)) for choice in begun)


def test_an_undisturbed_turn_has_nothing_replayed_and_nothing_wasted() -> None:
    work = Work(cached=2)
    work.clock.advance(3.0)
    running = work.claim()
    work.clock.advance(4.0)
    work.compute(running, 0, MAX_TOKENS)
    num_prompt = len(work.job.prompt_ids)
    assert work.end(running) == Ledger(
        queued=num_prompt,
        prefilled=num_prompt - 2,
        cached=2,
        emitted=MAX_TOKENS,
        attempts=1,
        queue_s=3.0,
        prefill_s=5.0,
        decode_s=MAX_TOKENS - 1.0,
    )


def test_what_a_lost_engine_had_computed_is_replayed_and_billed_once() -> None:
    work = Work()
    running = work.claim()
    work.compute(running, 0, 10)
    work.tell(running, 6)
    work.clock.advance(5.0)
    running = work.claim(running)
    work.clock.advance(2.0)
    work.compute(running, 0, MAX_TOKENS)
    ledger = work.end(running)
    num_prompt = len(work.job.prompt_ids)
    assert (ledger.prefilled, ledger.replayed, ledger.attempts) == (num_prompt, num_prompt + 6 + 4, 2)
    assert ledger.replay_s == 3.0


def test_another_worker_goes_on_with_the_ledger_that_it_finds_in_the_log() -> None:
    work = Work()
    work.clock.advance(3.0)
    running = work.claim()
    work.compute(running, 0, 1)
    work.tell(running)
    work.compute(running, 0, 5)
    work.tell(running)
    running = work.claim()
    work.compute(running, 0, MAX_TOKENS)
    ledger = work.end(running)
    num_prompt = len(work.job.prompt_ids)
    assert (ledger.queue_s, ledger.prefill_s, ledger.attempts) == (3.0, 1.0, 2)
    assert (ledger.prefilled, ledger.replayed) == (num_prompt, num_prompt + 6)


def test_a_restart_of_which_nothing_was_kept_has_lost_the_time_since_the_acceptance() -> None:
    work = Work()
    work.clock.advance(7.0)  # nobody knows how much of it was the queue
    running = work.claim()
    running.tally.come_back(None)
    work.clock.advance(2.0)
    work.compute(running, 0, MAX_TOKENS)
    ledger = work.end(running)
    assert (ledger.restarts, ledger.restart_s, ledger.queue_s, ledger.attempts) == (1, 7.0, 0.0, 1)
    assert ledger.whole_s == work.clock.now() - work.job.created


def test_a_restart_has_lost_the_time_since_the_answer_was_last_written_down() -> None:
    work = Work()
    work.clock.advance(3.0)
    running = work.claim()
    work.compute(running, 0, 8)
    work.tell(running)
    kept = running.tally.so_far(8)  # as the journal has it
    work.clock.advance(4.0)
    running = work.claim()
    running.tally.come_back(kept)
    work.compute(running, 0, MAX_TOKENS)
    ledger = work.end(running)
    assert (ledger.restarts, ledger.restart_s, ledger.queue_s, ledger.attempts) == (1, 4.0, 3.0, 2)
    assert ledger.whole_s == work.clock.now() - work.job.created


def test_the_attempt_after_a_restart_says_so() -> None:
    work = Work()
    work.clock.advance(7.0)
    tally = Tally(work.job, work.clock)
    tally.come_back(None)
    tally.begin(5, me="me", claim_s=0.0, after=0, before=(0, ""))
    times = tally.so_far(0).times
    assert times is not None
    assert [(each.cause, each.restart_s) for each in times.attempts] == [("restart", 7.0)]


def test_the_start_of_a_model_is_told_apart_from_the_queue() -> None:
    work = Work()
    created = work.clock.now()
    work.clock.advance(10.0)
    running = work.claim()
    running.tally.await_start(created + 8.0)
    work.compute(running, 0, MAX_TOKENS)
    ledger = work.end(running)
    assert (ledger.start_s, ledger.queue_s) == (8.0, 10.0)
    other = work.claim()
    other.tally.await_start(created - 5.0)  # it was there before
    assert other.tally.so_far(0).start_s == 0.0


def test_tokens_without_a_place_in_the_stream_are_wasted() -> None:
    work = Work(choices=2)
    running = work.claim()
    work.compute(running, 1, 4)  # they wait for the first choice's
    running.end(TurnState.CANCELLED)
    running.tally.waste()  # and what the engine had on its way
    ledger = work.end(running)
    assert (ledger.emitted, ledger.wasted) == (0, 5)


def test_a_turn_that_ended_before_its_first_token_has_spent_its_time_before_it() -> None:
    work = Work()
    work.clock.advance(3.0)
    running = work.claim()
    work.clock.advance(4.0)
    running.end(TurnState.CANCELLED)
    ledger = work.end(running)
    assert (ledger.queue_s, ledger.prefill_s, ledger.decode_s) == (3.0, 4.0, 0.0)
    assert ledger.computed == 0


def test_only_the_first_chunk_of_an_attempt_and_the_last_one_carry_a_ledger() -> None:
    work = Work()
    running = work.claim()
    for _ in range(MAX_TOKENS):
        work.compute(running, 0, 1)
        work.tell(running)
    assert [chunk.first for chunk in work.log if chunk.ledger] == [1, MAX_TOKENS]

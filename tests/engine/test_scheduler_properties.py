"""Whatever comes and goes, over however few blocks: nothing leaks, nothing deadlocks, every token is the right one."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from axon.engine.echo import EOS_ID, EchoRunner
from axon.engine.messages import Emitted
from tests.engine.builders import make_add, make_scheduler

prompts = st.lists(st.integers(0, 2), min_size=1, max_size=14)


class EngineMachine(RuleBasedStateMachine):
    """Drives the scheduler with the echo's memory behind it, which shows a wrong block as a wrong token."""

    @initialize(blocks=st.integers(4, 9), budget=st.integers(1, 12), slots=st.integers(1, 5))
    def start(self, blocks: int, budget: int, slots: int) -> None:
        self.scheduler = make_scheduler(
            blocks=blocks,
            block_size=4,
            max_sequences=slots,
            max_batch_tokens=budget,
            eos_ids=frozenset({EOS_ID}),
        )
        self.runner = EchoRunner(blocks, 4, 0.0)
        self.expected: dict[str, list[int]] = {}
        self.count = 0

    @rule(prompt=prompts, max_tokens=st.integers(1, 12), tenant=st.sampled_from("xy"), replayed=st.integers(0, 3))
    def add(self, prompt: list[int], max_tokens: int, tenant: str, replayed: int) -> None:
        self.count += 1
        id = str(self.count)
        answer = [*prompt, EOS_ID][:max_tokens]
        output = answer[: min(replayed, len(answer) - 1)]
        self.scheduler.add(make_add(id, prompt=prompt, output=output, max_tokens=max_tokens, tenant=tenant))
        if not self.scheduler.take_refused():
            self.expected[id] = answer[len(output) :]

    @rule()
    def step(self) -> None:
        batch = self.scheduler.schedule()
        assert batch.num_tokens <= self.scheduler.max_batch_tokens
        assert bool(batch.spans) == bool(self.expected), "work is left, but a step does none of it"
        tokens = self.runner.run(batch) if batch.spans else []
        for emitted in self.scheduler.settle(batch, tokens):
            self.take(emitted)

    def take(self, emitted: Emitted) -> None:
        assert emitted.token == self.expected[emitted.id].pop(0)
        at_capacity = emitted.finish == "length"
        assert (emitted.finish is not None) == (not self.expected[emitted.id]) or at_capacity
        if emitted.finish:
            del self.expected[emitted.id]

    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        if self.expected:
            id = data.draw(st.sampled_from(sorted(self.expected)))
            self.scheduler.abort([id])
            del self.expected[id]

    @invariant()
    def bookkeeping_holds(self) -> None:
        if hasattr(self, "scheduler"):
            self.scheduler.check()

    def teardown(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        for _ in range(2000):
            if not self.scheduler.has_work:
                break
            self.step()
        assert not self.scheduler.has_work
        assert self.scheduler.pool.num_used == 0


TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@given(st.lists(st.tuples(prompts, st.integers(1, 12)), min_size=1, max_size=8), st.integers(4, 6))
@settings(max_examples=60, deadline=None)
def test_the_oldest_sequence_is_never_overtaken_by_parking(jobs: list[tuple[list[int], int]], blocks: int) -> None:
    scheduler = make_scheduler(blocks=blocks, max_batch_tokens=6)
    for index, (prompt, max_tokens) in enumerate(jobs):
        scheduler.add(make_add(str(index), prompt=prompt, max_tokens=max_tokens))
    scheduler.take_refused()
    while scheduler.has_work:
        batch = scheduler.schedule()
        ids = [int(span.id) for span in batch.spans]
        assert ids == sorted(ids)
        scheduler.settle(batch, [1] * len(batch.draws))

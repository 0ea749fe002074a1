"""Whatever comes and goes, over however few blocks: nothing leaks, nothing deadlocks, every token is the right one."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from axon.domain.byte_tokens import EOS_ID
from axon.engine.batch import Batch
from axon.engine.protocol.messages import Emitted
from axon.engine.schedule.limits.controller import NO_DRAFTS
from axon.engine.schedule.policy import PolicyName, make_policy
from tests.engine.builders import make_add, make_drawn, make_scheduler
from tests.engine.schedule.pipeline import Pipeline
from tests.long import examples

prompts = st.lists(st.integers(0, 2), min_size=1, max_size=14)
policies = st.sampled_from(["fair", "first_come"])


class EngineMachine(RuleBasedStateMachine):
    """Drives the scheduler with the echo's memory behind it, which shows a wrong block as a wrong token.

    With a lag of one, every step is planned before the one before it has run.
    """

    @initialize(
        blocks=st.integers(4, 9),
        budget=st.integers(1, 12),
        prefill=st.integers(0, 6),
        slots=st.integers(1, 5),
        lag=st.integers(0, 1),
        policy=policies,
        price=st.sampled_from([NO_DRAFTS, 0.3, 0.05]),
    )
    def start(
        self, blocks: int, budget: int, prefill: int, slots: int, lag: int, policy: PolicyName, price: float
    ) -> None:
        self.scheduler = make_scheduler(
            blocks=blocks,
            block_size=4,
            max_sequences=slots,
            max_batch_tokens=budget,
            max_prefill_tokens=prefill,
            eos_ids=frozenset({EOS_ID}),
            policy=make_policy(policy),
        )
        self.pipeline = Pipeline(self.scheduler, lag, draft_price=NO_DRAFTS if lag else price)
        self.expected: dict[str, list[int]] = {}
        self.count = 0
        self.now = 0.0
        self.drawn: set[tuple[int, int]] = set()

    @rule(
        prompt=prompts,
        max_tokens=st.integers(1, 12),
        tenant=st.sampled_from("xyz"),
        weight=st.sampled_from([0.5, 1.0, 3.0]),
        kv_share=st.sampled_from([1.0, 1.0, 0.7, 0.4]),
        reserved=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
        priority=st.integers(-1, 1),
        replayed=st.integers(0, 3),
        interrupted=st.booleans(),
        patience=st.none() | st.integers(1, 20),
    )
    def add(
        self,
        prompt: list[int],
        max_tokens: int,
        tenant: str,
        weight: float,
        kv_share: float,
        reserved: float,
        priority: int,
        replayed: int,
        interrupted: bool,
        patience: int | None,
    ) -> None:
        self.count += 1
        id = str(self.count)
        answer = [*prompt, EOS_ID][:max_tokens]
        output = answer[: min(replayed, len(answer) - 1)]
        deadline = None if patience is None else self.now + patience
        self.scheduler.add(
            make_add(
                id,
                prompt=prompt,
                output=output,
                max_tokens=max_tokens,
                tenant=tenant,
                weight=weight,
                kv_share=kv_share,
                reserved=reserved,
                priority=priority,
                deadline=deadline,
                interrupted=interrupted and bool(output),
            )
        )
        if not self.scheduler.take_refused():
            self.expected[id] = answer[len(output) :]

    @rule(prompt=prompts, count=st.integers(2, 4), max_tokens=st.integers(1, 12), tenant=st.sampled_from("xy"))
    def add_choices(self, prompt: list[int], count: int, max_tokens: int, tenant: str) -> None:
        """Sequences of one prompt at once, which wait for each other's blocks."""
        for choice in range(count):
            self.count += 1
            id = str(self.count)
            self.scheduler.add(make_add(id, prompt=prompt, max_tokens=max_tokens, tenant=tenant, choice=choice))
            if not self.scheduler.take_refused():
                self.expected[id] = [*prompt, EOS_ID][:max_tokens]

    @rule()
    def step(self) -> None:
        self.now += 1
        batch, emitted = self.pipeline.step(self.now)
        for refused in self.scheduler.take_refused():
            assert refused.code == "deadline_exceeded"
            del self.expected[refused.id]
        self.look_at(batch)
        for each in emitted:
            self.take(each)

    def look_at(self, batch: Batch) -> None:
        assert batch.num_tokens <= self.scheduler.max_batch_tokens
        if self.pipeline.lag == 0:
            assert bool(batch.spans) == bool(self.expected), "work is left, but a step does none of it"
        streams = [span for span in batch.spans if (span.arrival, span.admission) in self.drawn]
        if streams:
            num_prefilled = sum(len(span.token_ids) - 1 - len(span.drafts) for span in batch.spans)
            assert num_prefilled <= self.scheduler.max_prefill_tokens, "a prompt stalls a stream"
        self.drawn = {(span.arrival, span.admission) for span in batch.spans if span.draw}

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

    @rule(data=st.data(), prompt=prompts)
    def start_over(self, data: st.DataObject, prompt: list[int]) -> None:
        """The same id with another prompt, perhaps while a step with the old one is in flight."""
        if self.expected:
            id = data.draw(st.sampled_from(sorted(self.expected)))
            self.scheduler.add(make_add(id, prompt=prompt, max_tokens=20))
            del self.expected[id]
            if not self.scheduler.take_refused():
                self.expected[id] = [*prompt, EOS_ID]

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
TestEngineMachine.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)

jobs = st.lists(st.tuples(prompts, st.integers(1, 12)), min_size=1, max_size=8)


@given(jobs, st.integers(4, 6))
@settings(max_examples=examples(60), deadline=None)
def test_the_oldest_sequence_is_never_overtaken_by_parking(jobs: list[tuple[list[int], int]], blocks: int) -> None:
    scheduler = make_scheduler(blocks=blocks, max_batch_tokens=6)
    for index, (prompt, max_tokens) in enumerate(jobs):
        scheduler.add(make_add(str(index), prompt=prompt, max_tokens=max_tokens))
    scheduler.take_refused()
    running: set[int] = set()
    while scheduler.has_work:
        batch = scheduler.schedule()
        served = {int(span.id) for span in batch.spans}
        parked, stayed = running - served, running & served
        assert all(old < new for old in stayed for new in parked)
        emitted = scheduler.settle(batch, make_drawn(*[1] * len(batch.draws)))
        running = served - {int(each.id) for each in emitted if each.finish}


newcomers = st.lists(
    st.tuples(
        prompts,
        st.integers(1, 12),
        st.sampled_from([("x", 0.0), ("y", 0.0), ("y", 0.25), ("z", 0.25)]),
        st.sampled_from([1.0, 3.0]),
        st.sampled_from([1.0, 0.5]),
    ),
    min_size=1,
    max_size=6,
)


@given(newcomers, st.integers(4, 9), st.integers(1, 12), st.integers(0, 1), policies)
@settings(max_examples=examples(60), deadline=None)
def test_a_sequence_ends_however_many_more_keep_coming(
    newcomers: list[tuple[list[int], int, tuple[str, float], float, float]],
    blocks: int,
    budget: int,
    lag: int,
    policy: PolicyName,
) -> None:
    """More come each step than are served, over all tenants, and for ever: who was first in its tenant still ends."""
    scheduler = make_scheduler(
        blocks=blocks, max_batch_tokens=budget, eos_ids=frozenset({EOS_ID}), policy=make_policy(policy)
    )
    pipeline = Pipeline(scheduler, lag)
    scheduler.add(make_add("patient", prompt=[1, 2] * 6, max_tokens=13, tenant="x"))
    assert not scheduler.take_refused()
    added = 0
    for _ in range(2000):
        for _ in range(20 - scheduler.num_waiting):
            added += 1
            prompt, max_tokens, (tenant, reserved), weight, kv_share = newcomers[added % len(newcomers)]
            scheduler.add(
                make_add(
                    str(added),
                    prompt=prompt,
                    max_tokens=max_tokens,
                    tenant=tenant,
                    reserved=reserved,
                    weight=weight,
                    kv_share=kv_share,
                )
            )
            scheduler.take_refused()
        if any(emitted.id == "patient" and emitted.finish for emitted in pipeline.step()[1]):
            break
        scheduler.check()
    else:
        raise AssertionError("it starves")


@given(jobs, st.integers(4, 9), st.integers(1, 12), policies)
@settings(max_examples=examples(60), deadline=None)
def test_planning_ahead_changes_no_token(
    jobs: list[tuple[list[int], int]], blocks: int, budget: int, policy: PolicyName
) -> None:
    outputs: list[dict[str, list[int]]] = []
    for lag in (0, 1):
        scheduler = make_scheduler(
            blocks=blocks, max_batch_tokens=budget, eos_ids=frozenset({EOS_ID}), policy=make_policy(policy)
        )
        for index, (prompt, max_tokens) in enumerate(jobs):
            scheduler.add(make_add(str(index), prompt=prompt, max_tokens=max_tokens, tenant=str(index % 2)))
        scheduler.take_refused()
        pipeline = Pipeline(scheduler, lag)
        outputs.append({})
        while scheduler.has_work:
            for emitted in pipeline.step()[1]:
                outputs[-1].setdefault(emitted.id, []).append(emitted.token)
        scheduler.check()
    assert outputs[0] == outputs[1]

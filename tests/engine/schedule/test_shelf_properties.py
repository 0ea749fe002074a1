"""Whatever comes, goes, is erased or damaged: nothing leaks between device and shelf, and every token is right."""

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from axon.domain.byte_tokens import EOS_ID
from axon.engine.echo import ID_BYTES, EchoRunner
from axon.engine.schedule.allocation import LOAD_PATIENCE_S
from axon.engine.schedule.blocks import chain_hashes, tag_of
from axon.engine.schedule.shelf import Shelf
from tests.engine.builders import make_add, make_scheduler
from tests.engine.schedule.pipeline import Pipeline
from tests.engine.schedule.twin_files import TwinFiles
from tests.long import examples

BLOCK = 2
prompts = st.lists(st.integers(0, 2), min_size=1, max_size=12)


class ShelfMachine(RuleBasedStateMachine):
    """Drives a scheduler with few blocks, fewer slots and few places; the echo's memory shows a wrong block.

    Copies are made before the step beside which they are planned, or after it: on a GPU they run at the same time.
    """

    @initialize(
        blocks=st.integers(7, 9),
        slots=st.integers(1, 8),
        places=st.integers(0, 12),
        copies=st.integers(1, 4),
        budget=st.integers(1, 12),
        lag=st.integers(0, 1),
        max_age_s=st.sampled_from([0.0, 30.0]),
        moves_late=st.booleans(),
    )
    def start(
        self,
        blocks: int,
        slots: int,
        places: int,
        copies: int,
        budget: int,
        lag: int,
        max_age_s: float,
        moves_late: bool,
    ) -> None:
        self.files = TwinFiles(places)
        self.shelf = Shelf(slots, block_size=BLOCK, max_copies=copies, files=self.files, max_age_s=max_age_s)
        self.scheduler = make_scheduler(
            blocks=blocks,
            block_size=BLOCK,
            max_sequences=3,
            max_batch_tokens=budget,
            eos_ids=frozenset({EOS_ID}),
            shelf=self.shelf,
        )
        runner = EchoRunner(blocks, BLOCK, 0.0)
        mover = runner.open_mover(slots)
        self.files.attach(mover.memory, BLOCK * ID_BYTES)
        self.pipeline = Pipeline(self.scheduler, lag, runner, mover=mover, moves_late=moves_late)
        self.expected: dict[str, list[int]] = {}
        self.known: dict[bytes, bytes] = {}
        self.count, self.now = 0, 0.0
        self.max_age_s = max_age_s

    @rule(
        prompt=prompts,
        max_tokens=st.integers(1, 6),
        tenant=st.sampled_from("xy"),
        session=st.sampled_from(["", "s", "t"]),
        priority=st.integers(-1, 1),
        forget=st.booleans(),
    )
    def add(self, prompt: list[int], max_tokens: int, tenant: str, session: str, priority: int, forget: bool) -> None:
        self.count += 1
        id = str(self.count)
        add = make_add(
            id,
            prompt=prompt,
            max_tokens=max_tokens,
            tenant=tenant,
            session=session,
            priority=priority,
            forget=forget,
        )
        self.scheduler.add(add)
        self.learn([*prompt, *prompt], tenant)
        if not self.scheduler.take_refused():
            self.expected[id] = [*prompt, EOS_ID][:max_tokens]

    def learn(self, token_ids: list[int], tenant: str) -> None:
        """Notes what stands in the blocks of a prompt and of the echo behind it, by their hashes."""
        hashes: list[bytes] = []
        chain_hashes(hashes, token_ids, len(token_ids) // BLOCK, BLOCK, salt=f"\0{tenant}")
        for index, key in enumerate(hashes):
            self.known[key] = array("q", token_ids[index * BLOCK : (index + 1) * BLOCK]).tobytes()

    @rule(seconds=st.sampled_from([0.1, 1.0, 20.0]))
    def step(self, seconds: float) -> None:
        self.now += seconds
        _, emitted = self.pipeline.step(self.now)
        for each in emitted:
            assert each.token == self.expected[each.id].pop(0), "a foreign or half copied block"
            if each.finish:
                del self.expected[each.id]

    @rule(count=st.integers(1, 5))
    def files_work(self, count: int) -> None:
        self.files.work(count)

    @rule()
    def a_read_fails(self) -> None:
        self.files.damages_next = True

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.expected)))
        self.scheduler.abort([id])
        del self.expected[id]

    @rule(session=st.sampled_from("st"))
    def erase(self, session: str) -> None:
        self.scheduler.erase([session])
        assert tag_of(session) not in self.shelf._tagged

    @rule()
    def start_again(self) -> None:
        """Another engine over the same files, whose blocks are gone; what was on its way is computed again."""
        self.files.work(self.files.num_asked)
        self.files.news()
        for id in list(self.expected):
            self.scheduler.abort([id])
        self.expected.clear()
        shelf = Shelf(
            self.shelf._host.num_slots,
            block_size=BLOCK,
            max_copies=self.shelf.max_copies,
            files=self.files,
            max_age_s=self.max_age_s,
        )
        pool = self.scheduler.pool
        self.scheduler = make_scheduler(
            blocks=pool.num_blocks,
            block_size=BLOCK,
            max_sequences=3,
            max_batch_tokens=self.scheduler.max_batch_tokens,
            eos_ids=frozenset({EOS_ID}),
            shelf=shelf,
        )
        runner = EchoRunner(pool.num_blocks, BLOCK, 0.0)
        mover = runner.open_mover(shelf._host.num_slots)
        self.files.attach(mover.memory, BLOCK * ID_BYTES)
        self.shelf = shelf
        lag, moves_late = self.pipeline.lag, self.pipeline.moves_late
        self.pipeline = Pipeline(self.scheduler, lag, runner, mover=mover, moves_late=moves_late)

    @invariant()
    def bookkeeping_holds(self) -> None:
        if hasattr(self, "scheduler"):
            self.scheduler.check()

    @invariant()
    def every_copy_is_what_its_hash_says(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        size = BLOCK * ID_BYTES
        for key, kept in self.shelf._host._kept.items():
            if kept.is_ready:
                assert self.files.memory[kept.slot * size : (kept.slot + 1) * size] == self.known[key]
        for place, content in self.files.held.values():
            assert content == self.known[place.key]

    def teardown(self) -> None:
        if not hasattr(self, "scheduler"):
            return
        self.max_age_s = 0.0
        for _ in range(2000):
            if not self.scheduler.has_work and not self.shelf.awaits_news:
                break
            self.files.work(3)
            self.step(0.0)
        for _ in range(12):  # settles the step in flight, and saves what waited for the only slot
            self.files.work(self.files.num_asked)
            self.step(0.0)
        self.scheduler.erase(["s", "t"])
        self.files.work(self.files.num_asked)
        assert not self.scheduler.has_work
        assert self.scheduler.pool.num_used == 0
        self.scheduler.check()
        self.look_for_leaks()

    def look_for_leaks(self) -> None:
        shelf = self.shelf
        assert not any([shelf._moving, shelf._saving, shelf._loading, shelf._offered])
        assert not shelf._host._leaving
        assert not shelf._places._leaving
        assert all(not place.tag for place, _ in self.files.held.values()), "an erased block is still in a file"
        assert {place.key for place, _ in self.files.held.values()} == set(shelf._places)


TestShelfMachine = ShelfMachine.TestCase
TestShelfMachine.settings = settings(max_examples=examples(120), stateful_step_count=50, deadline=None)


def test_a_disk_that_hangs_holds_nobody_up_for_long() -> None:
    files = TwinFiles(64)
    shelf = Shelf(4, block_size=BLOCK, max_copies=2, files=files)
    scheduler = make_scheduler(blocks=6, block_size=BLOCK, eos_ids=frozenset({EOS_ID}), shelf=shelf)
    runner = EchoRunner(6, BLOCK, 0.0)
    mover = runner.open_mover(4)
    files.attach(mover.memory, BLOCK * ID_BYTES)
    pipeline = Pipeline(scheduler, 0, runner, mover=mover)
    now = 0.0

    def run(prompt: list[int]) -> float:
        """Seconds until its token comes, one for each step."""
        nonlocal now
        began = now
        scheduler.add(make_add(prompt=prompt, max_tokens=1))
        while scheduler.has_work:
            now += 1.0
            assert now - began < 50.0, "it waits for the disk for ever"
            pipeline.step(now)
            if not hangs:
                files.work(files.num_asked)
        return now - began

    hangs = False
    for token in (1, 2, 3, 4, 5):
        run([token] * 9)
    assert shelf.num_in_files >= 5 * 4
    hangs = True
    assert LOAD_PATIENCE_S < run([1] * 9) <= LOAD_PATIENCE_S + 4
    scheduler.check()


@given(prompts, prompts)
@settings(max_examples=examples(60), deadline=None)
def test_no_tenant_finds_anothers_blocks(prompt: list[int], other: list[int]) -> None:
    files = TwinFiles(64, at_once=True)
    shelf = Shelf(16, block_size=BLOCK, max_copies=4, files=files)
    scheduler = make_scheduler(blocks=8, block_size=BLOCK, eos_ids=frozenset({EOS_ID}), shelf=shelf)
    runner = EchoRunner(8, BLOCK, 0.0)
    mover = runner.open_mover(16)
    files.attach(mover.memory, BLOCK * ID_BYTES)
    pipeline = Pipeline(scheduler, 0, runner, mover=mover)
    found: dict[str, int] = {}
    for number, (tokens, tenant) in enumerate([(prompt, "x"), (other, "z"), (prompt, "y"), (prompt, "x")]):
        scheduler.add(make_add(str(number), prompt=tokens, max_tokens=1, tenant=tenant))
        scheduler.take_refused()
        while scheduler.has_work:
            for emitted in pipeline.step()[1]:
                found[emitted.id] = emitted.cached
    assert found.get("2", 0) == 0
    if "0" in found and "3" in found:
        assert found["3"] == (len(prompt) - 1) // BLOCK * BLOCK

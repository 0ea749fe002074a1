"""An engine whose batches are launched plans one step ahead; what it emits is what it would emit step by step."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from axon.engine.batch import Batch, Drawn, fill
from axon.engine.copies import Copies
from axon.engine.core import EngineCore
from axon.engine.echo import EchoMover, EchoRunner
from axon.engine.schedule.limits.controller import FixedController, Forecast, StepController, StepLimits
from axon.engine.schedule.limits.feedback_controller import FeedbackController
from axon.engine.schedule.shelf import Shelf
from tests.engine.builders import make_add, make_scheduler, run_to_end
from tests.engine.shelf_engine import AlwaysCopy


@dataclass
class Landed:
    drawn: list[Drawn]

    def land(self) -> list[Drawn]:
        return self.drawn


class EchoLauncher:
    """Runs a batch when the next one is launched or it is landed, whichever comes first, as a device may."""

    def __init__(self, runner: EchoRunner) -> None:
        self._runner = runner
        self._latest: dict[str, int] = {}
        self.num_launched = 0

    def launch(self, batch: Batch) -> Landed:
        self.num_launched += 1
        drawn = self._runner.run(fill(batch, self._latest))
        results = iter(drawn)
        for span in batch.spans:
            for each in span.take_results(results)[1]:
                self._latest[span.id] = each.token
        return Landed(drawn)


def make_core(
    *,
    ahead: bool,
    blocks: int = 40,
    later: Callable[[], bool] | None = None,
    controller: StepController | None = None,
) -> EngineCore:
    scheduler = make_scheduler(blocks=blocks)
    runner = EchoRunner(scheduler.pool.num_blocks, scheduler.pool.block_size, 0.0)
    launcher = EchoLauncher(runner) if ahead else None
    return EngineCore(scheduler, runner, kernel="echo", launcher=launcher, later=later, controller=controller)


@dataclass
class Slow(Landed):
    clock: list[float]
    took_s: float

    def land(self) -> list[Drawn]:
        self.clock[0] += self.took_s
        return self.drawn


ADDS = [make_add(str(index), prompt=list(range(index + 1, index + 12)), max_tokens=9) for index in range(5)]


def test_planned_ahead_equals_step_by_step() -> None:
    assert run_to_end(make_core(ahead=True), ADDS) == run_to_end(make_core(ahead=False), ADDS)


def test_planned_ahead_under_pressure_equals_step_by_step() -> None:
    tight = make_core(ahead=True, blocks=10)
    assert run_to_end(tight, ADDS) == run_to_end(make_core(ahead=False), ADDS)
    assert tight.step().counters.preemptions > 0


class NowAndThen(FixedController):
    """Wants drafts in some steps and none in others."""

    def __init__(self, pattern: str) -> None:
        super().__init__(StepLimits(max_prefill_tokens=16))
        self._pattern, self._num_steps = pattern, 0

    def limits(self, forecast: Forecast) -> StepLimits:
        self._num_steps += 1
        wants = self._pattern[self._num_steps % len(self._pattern)] == "d"
        return StepLimits(max_prefill_tokens=16, draft_price=0.05) if wants else super().limits(forecast)


@pytest.mark.parametrize("pattern", ["d", "-d", "d--", "dd-", "-----d"])
@pytest.mark.parametrize("blocks", [40, 10])
def test_drafts_beside_steps_planned_ahead_change_no_token(pattern: str, blocks: int) -> None:
    """A step in flight is settled before drafts are made behind its tokens, and one with drafts before the next."""
    adds = [make_add(str(index), prompt=[index, 7, 8] * 4, max_tokens=12) for index in range(3)]
    core = make_core(ahead=True, blocks=blocks, controller=NowAndThen(pattern))
    assert run_to_end(core, adds) == run_to_end(make_core(ahead=False), adds)
    core.check()
    counters = core.step().counters
    assert 0 < counters.accepted <= counters.drafted
    assert counters.blocks_used == 0


def test_the_first_step_launches_and_the_second_emits() -> None:
    core = make_core(ahead=True)
    core.add(make_add(prompt=[7, 8], max_tokens=1))
    assert core.step().emitted == []
    assert core.has_work
    assert [each.token for each in core.step().emitted] == [7]
    assert not core.has_work


@pytest.mark.parametrize("ahead", [False, True])
def test_what_can_wait_is_done_piece_by_piece_behind_the_first_tokens(ahead: bool) -> None:
    left = [1, 2, 3]

    def later() -> bool:
        if left:
            left.pop()
        return bool(left)

    core = make_core(ahead=ahead, later=later)
    core.add(make_add(prompt=[7, 8], max_tokens=9, ignore_eos=True))
    while not core.step().emitted:
        assert len(left) == 3
    assert len(left) == 3
    core.step()
    assert len(left) == 2
    while core.has_work:
        core.step()
    assert left == []
    assert not core.tend()
    left += [4, 5]  # more can come up while it runs
    assert core.tend()
    assert not core.tend()


def test_an_idle_engine_does_what_can_wait() -> None:
    left = [1, 2]
    core = make_core(ahead=True, later=lambda: bool(left.pop()) and bool(left))
    assert core.tend()
    assert not core.tend()
    assert left == []


def test_a_step_tells_how_many_run_of_each_priority_and_how_many_have_yielded() -> None:
    core = make_core(ahead=False, blocks=100)
    for index, priority in enumerate([0, 0, -1, 1]):
        core.add(make_add(str(index), prompt=[index] * 9, max_tokens=50, tenant="flood", priority=priority))
    assert core.step().counters.running_by_priority == {1: 1, 0: 1}
    assert core.step().counters.running_by_priority == {1: 1, 0: 2, -1: 1}
    core.step()
    core.add(make_add("light", tenant="light"))
    assert core.step().counters.yielded == 1


def test_how_long_a_launched_step_takes_is_learned_from_one_landing_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps take 10 ms and 50 µs a prompt token; 40 ms may pass between two tokens of a stream."""
    clock = [0.0]
    monkeypatch.setattr("axon.engine.core.time.perf_counter", lambda: clock[0])

    class Device(EchoLauncher):
        def launch(self, batch: Batch) -> Landed:
            num_prompt = batch.num_tokens - sum(span.is_stream for span in batch.spans)
            launched = super().launch(batch)
            return Slow(launched.drawn, clock, 0.010 + 0.00005 * num_prompt)

    scheduler = make_scheduler(blocks=3000, max_batch_tokens=2000, max_model_len=9000)
    runner = EchoRunner(scheduler.pool.num_blocks, scheduler.pool.block_size, 0.0)
    controller = FeedbackController(max_prefill_tokens=1024, slo_s=0.040)
    core = EngineCore(scheduler, runner, kernel="echo", launcher=Device(runner), controller=controller)
    core.add(make_add("stream", prompt=[1], max_tokens=500, ignore_eos=True))
    for _ in range(100):
        core.step()
    core.add(make_add("prompt", prompt=[5] * 8000))
    chunks = [core.step().counters.batch_tokens - 1 for _ in range(13)]
    assert max(chunks) >= 1024, "before it is known how long that takes"
    assert chunks[3:] == [576] * len(chunks[3:]), chunks  # the one that was on its way by then does not count twice


def test_a_batch_in_flight_whose_sequences_were_aborted_is_still_landed() -> None:
    core = make_core(ahead=True)
    core.add(make_add(prompt=[7, 8]))
    core.step()
    core.abort(["a"])
    outputs = run_to_end(core, [])
    assert outputs == {}


class LateMover:
    """Copies when the steps behind it must see them, as a device's own stream may, and no earlier."""

    def __init__(self, mover: EchoMover) -> None:
        self._mover = mover

    @property
    def memory(self) -> memoryview:
        return self._mover.memory

    def move(self, copies: Copies) -> "LateCopies":
        return LateCopies(self._mover, copies)


class LateCopies:
    def __init__(self, mover: EchoMover, copies: Copies) -> None:
        self._mover, self._copies = mover, copies
        self.is_done = False

    def precede(self) -> None:
        assert not self.is_done
        self._mover.move(self._copies)
        self.is_done = True

    def finish(self) -> float:
        assert self.is_done, "the next step did not wait for the copies"
        return 1e-6


@pytest.mark.parametrize("ahead", [False, True])
def test_blocks_come_back_from_the_shelf_beside_the_steps(ahead: bool) -> None:
    shelf = Shelf(60, block_size=4, max_copies=2, costs=AlwaysCopy())
    scheduler = make_scheduler(blocks=8, shelf=shelf)
    runner = EchoRunner(8, 4, 0.0)
    mover = runner.open_mover(60)
    engine = EngineCore(
        scheduler,
        runner,
        kernel="echo",
        launcher=EchoLauncher(runner) if ahead else None,
        mover=LateMover(mover) if ahead else mover,
    )
    expected = run_to_end(make_core(ahead=False), ADDS)
    for _ in range(2):
        for add in ADDS:
            assert run_to_end(engine, [add]) == {add.id: expected[add.id]}
    assert shelf.counters().loaded_tokens >= len(ADDS) * 8
    assert run_to_end(engine, ADDS) == expected

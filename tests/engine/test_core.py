"""An engine whose batches are launched plans one step ahead; what it emits is what it would emit step by step."""

from dataclasses import dataclass

from axon.engine.batch import Batch, Drawn, fill
from axon.engine.core import EngineCore
from axon.engine.echo import EchoRunner
from tests.engine.builders import make_add, make_scheduler, run_to_end


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
        ids = [span.id for span in batch.spans if span.draw is not None]
        self._latest.update({id: each.token for id, each in zip(ids, drawn, strict=True)})
        return Landed(drawn)


def make_core(*, ahead: bool, blocks: int = 40) -> EngineCore:
    scheduler = make_scheduler(blocks=blocks)
    runner = EchoRunner(scheduler.pool.num_blocks, scheduler.pool.block_size, 0.0)
    launcher = EchoLauncher(runner) if ahead else None
    return EngineCore(scheduler, runner, kernel="echo", launcher=launcher)


ADDS = [make_add(str(index), prompt=list(range(index + 1, index + 12)), max_tokens=9) for index in range(5)]


def test_planned_ahead_equals_step_by_step() -> None:
    assert run_to_end(make_core(ahead=True), ADDS) == run_to_end(make_core(ahead=False), ADDS)


def test_planned_ahead_under_pressure_equals_step_by_step() -> None:
    tight = make_core(ahead=True, blocks=10)
    assert run_to_end(tight, ADDS) == run_to_end(make_core(ahead=False), ADDS)
    assert tight.step().counters.preemptions > 0


def test_the_first_step_launches_and_the_second_emits() -> None:
    core = make_core(ahead=True)
    core.add(make_add(prompt=[7, 8], max_tokens=1))
    assert core.step().emitted == []
    assert core.has_work
    assert [each.token for each in core.step().emitted] == [7]
    assert not core.has_work


def test_a_batch_in_flight_whose_sequences_were_aborted_is_still_landed() -> None:
    core = make_core(ahead=True)
    core.add(make_add(prompt=[7, 8]))
    core.step()
    core.abort(["a"])
    outputs = run_to_end(core, [])
    assert outputs == {}

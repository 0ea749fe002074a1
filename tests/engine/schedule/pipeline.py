"""Steps of a scheduler over the echo's memory, settled at once or one step late. Holds no assertions."""

from axon.engine.batch import Batch, Drawn, fill
from axon.engine.echo import EchoRunner
from axon.engine.protocol.messages import Emitted
from axon.engine.runner import Mover, Runner
from axon.engine.schedule.limits.controller import NO_DRAFTS, StepLimits
from axon.engine.schedule.scheduler import Scheduler


class Pipeline:
    """With a lag of one, step n runs and is settled after step n + 1 is planned."""

    def __init__(
        self,
        scheduler: Scheduler,
        lag: int,
        runner: Runner | None = None,
        *,
        draft_price: float = NO_DRAFTS,
        mover: Mover | None = None,
        moves_late: bool = False,
    ) -> None:
        """With ``moves_late`` copies are made after the step beside which they are planned, else before it."""
        self.lag = lag
        self._limits = StepLimits(max_prefill_tokens=scheduler.max_prefill_tokens, draft_price=draft_price)
        self._scheduler = scheduler
        self._runner = runner or EchoRunner(scheduler.pool.num_blocks, scheduler.pool.block_size, 0.0)
        self._mover, self.moves_late = mover, moves_late
        self._planned: list[Batch] = []
        self._latest: dict[str, int] = {}

    def step(self, now: float = 0.0) -> tuple[Batch, list[Emitted]]:
        """Plans a batch and settles the one that is due."""
        batch = self._scheduler.schedule(now, self._limits)
        self._planned.append(batch)
        if len(self._planned) <= self.lag:
            return batch, []
        due = self._planned.pop(0)
        return batch, self._scheduler.settle(due, self._run(fill(due, self._latest)))

    def _run(self, batch: Batch) -> list[Drawn]:
        if not self.moves_late:
            self._move(batch)
        drawn = self._runner.run(batch) if batch.spans else []
        if self.moves_late:
            self._move(batch)
        ids = [span.id for span in batch.spans for _ in span.draws]
        self._latest.update({id: each.token for id, each in zip(ids, drawn, strict=True)})
        return drawn

    def _move(self, batch: Batch) -> None:
        if batch.copies is not None and self._mover is not None:
            self._mover.move(batch.copies)

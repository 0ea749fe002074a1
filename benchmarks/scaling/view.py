"""What a policy is shown of a simulated fleet at one look: measured figures, the same for every policy."""

from dataclasses import dataclass

from axon.domain.scaling.intake import Taken
from benchmarks.scaling.engine_model import EngineModel
from benchmarks.scaling.fleet import Fleet
from benchmarks.scaling.tally import Since

_ERROR = 0.97
"""Measured throughput over the true one: no measurement is exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One look, with sums since the policy's last one."""

    now: float
    since_s: float
    """Seconds since the last look."""
    ready: int
    starting: int
    starting_age_s: float
    engine: EngineModel
    prefill_per_s: float
    """Measured throughput of a busy replica for prompts, in tokens per second; and for answers."""
    decode_per_s: float
    cold_start_s: float
    waiting: int
    """Jobs in the lanes."""
    running: int
    """Sequences that hold a slot."""
    taken: Taken
    """What replicas have taken since the run began, as workers tell it."""
    pending_prompt: float
    """Prompt tokens of the jobs that were taken and have no token yet."""
    remaining_answer: float
    """Answer tokens that what runs has left, predicted."""
    step_s: float
    idle_s: float
    since: Since
    ttft_p95_s: float | None
    """95th percentile of the last minute's times to the first token."""


def view_of(fleet: Fleet, *, since_s: float, starting: int, age_s: float, cold_start_s: float) -> View:
    """The view of a fleet now."""
    tally = fleet.tally
    mean = tally.lengths.mean(None)
    return View(
        now=fleet.now,
        since_s=since_s,
        ready=fleet.replicas,
        starting=starting,
        starting_age_s=age_s,
        engine=fleet.engine,
        prefill_per_s=_ERROR * fleet.engine.prefill_per_s,
        decode_per_s=_ERROR * fleet.engine.decode_per_s,
        cold_start_s=cold_start_s,
        waiting=fleet.num_waiting,
        running=fleet.num_running,
        taken=tally.taken,
        pending_prompt=sum(each.weight * each.prompt for each in fleet.taken),
        remaining_answer=fleet.num_running * mean / 2,
        step_s=fleet.step_s,
        idle_s=fleet.idle_s,
        since=tally.since_look,
        ttft_p95_s=tally.ttft_p95_s(fleet.now),
    )

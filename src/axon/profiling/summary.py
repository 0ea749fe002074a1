"""Sums of an engine's phases over all steps of a profile. No I/O."""

from dataclasses import dataclass

from axon.profiling.profile import StepsProfile


@dataclass(frozen=True, slots=True)
class PhaseSum:
    """One phase over all steps; ``step`` is the whole step, and those of the device begin with ``device: ``."""

    name: str
    count: int
    total_ms: float
    mean_ms: float
    p99_ms: float


def phase_sums(profile: StepsProfile) -> list[PhaseSum]:
    """The whole step first, then the phases in the order in which they were first entered."""
    times: dict[str, list[int]] = {}
    for step in profile.steps:
        times.setdefault("step", []).append(step.us)
        for phase in step.phases:
            times.setdefault(phase.name, []).append(phase.us)
        for phase in step.device:
            times.setdefault(f"device: {phase.name}", []).append(phase.us)
    return [_sum(name, sorted(each)) for name, each in times.items()]


def _sum(name: str, ordered: list[int]) -> PhaseSum:
    total, count = sum(ordered), len(ordered)
    p99 = ordered[min(count - 1, -(-99 * count // 100) - 1)]
    return PhaseSum(name, count, total / 1e3, total / count / 1e3, p99 / 1e3)

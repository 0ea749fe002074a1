"""Profiles of made-up processes."""

from axon.profiling.profile import Allocated, CpuProfile, MemoryProfile, Phase, Stack, Step, StepsProfile

SPIN, RUN, IDLE = "spin (axon/a.py:1)", "run <T> (lib/b.py:2)", "wait (lib/c.py:3)"


def cpu_profile() -> CpuProfile:
    """One thread that spins 3 s of 4, and one that waits."""
    return CpuProfile(
        process="worker-1",
        seconds=4.0,
        rounds=400,
        frames=["MainThread", RUN, SPIN, "pool", IDLE],
        stacks=[Stack((0, 1, 2), 3_000_000, 300), Stack((0, 1), 500_000, 100), Stack((3, 4), 0, 400)],
        cpu_s=3.6,
        cost_s=0.05,
    )


def memory_profile() -> MemoryProfile:
    return MemoryProfile(
        seconds=1.0,
        lines=[Allocated("axon/a.py:7", 2048, 2)],
        held_bytes=4096,
        peak_bytes=8192,
        resident_bytes=1 << 20,
    )


def steps_profile(num_steps: int = 3) -> StepsProfile:
    steps = [
        Step(
            start_us=1000 * number,
            us=900,
            sequences=2,
            tokens=5 + number,
            phases=[Phase("schedule", 1000 * number, 100), Phase("forward", 1000 * number + 100, 700 + number)],
            device=[Phase("batch", 1000 * number + 150, 600)],
        )
        for number in range(num_steps)
    ]
    return StepsProfile(process="worker-1/echo", pid=7, seconds=1.5, steps=steps)

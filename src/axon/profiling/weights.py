"""What the width of a stack stands for: processor time, or all time. No I/O."""

from enum import StrEnum

from axon.profiling.profile import CpuProfile, Stack


class Weight(StrEnum):
    """The unit in which stacks are compared."""

    CPU = "cpu"
    WALL = "wall"


def weight_of(stack: Stack, weight: Weight) -> int:
    """Microseconds of processor time, or samples."""
    return stack.cpu_us if weight is Weight.CPU else stack.samples


def unit_of(weight: Weight, rate: float = 100.0) -> float:
    """Seconds that one unit of the weight stands for; ``rate`` is that of the samples a second."""
    return 1e-6 if weight is Weight.CPU else 1 / rate


def rate_of(profile: CpuProfile) -> float:
    """Samples of each thread a second."""
    return max(profile.rounds / profile.seconds, 1e-9) if profile.seconds > 0 else 1.0


def heaviest(profile: CpuProfile, weight: Weight, most: int) -> list[tuple[str, float, float]]:
    """The functions in which most time was spent: name, seconds in itself, seconds with what it called."""
    own: dict[int, int] = {}
    whole: dict[int, int] = {}
    for stack in profile.stacks:
        value = weight_of(stack, weight)
        for index in set(stack.frames[1:]):
            whole[index] = whole.get(index, 0) + value
        if len(stack.frames) > 1:
            own[stack.frames[-1]] = own.get(stack.frames[-1], 0) + value
    unit = unit_of(weight, rate_of(profile))
    ranked = sorted(own, key=lambda index: -own[index])[:most]
    return [(profile.frames[index], own[index] * unit, whole[index] * unit) for index in ranked if own[index] > 0]

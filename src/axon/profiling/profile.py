"""The values of profiles. They hold places in the code, never a value of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MIN_SECONDS, MAX_SECONDS = 0.1, 60.0


class Kind(StrEnum):
    """The kinds of profiles."""

    CPU = "cpu"
    MEMORY = "memory"
    STEPS = "steps"


@dataclass(frozen=True, slots=True)
class Stack:
    """One call stack that was seen, outermost frame first."""

    frames: tuple[int, ...]
    """Indices into the profile's frames."""
    cpu_us: int
    """Processor time that its thread took while it was seen, in microseconds."""
    samples: int
    """Number of rounds in which it was seen, running or waiting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuProfile:
    """Stacks of all threads of a process, sampled at a fixed rate."""

    process: str = ""
    seconds: float
    """Seconds for which it was recorded."""
    rounds: int
    """Number of rounds; each looks at every thread once."""
    frames: list[str]
    """``function (file:line)``; the first frame of a stack is its thread."""
    stacks: list[Stack]
    cpu_s: float
    """Processor time of the process in these seconds, native threads included."""
    cost_s: float
    """Processor time of that which the sampler took itself."""
    missed: int = 0
    """Samples of stacks for which the table had no room; they are counted as one stack."""


@dataclass(frozen=True, slots=True)
class Allocated:
    """Memory that one line allocated while it was watched, and that is still in use."""

    place: str
    num_bytes: int
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryProfile:
    """Allocations of Python objects in a process, by the line that made them, largest first."""

    process: str = ""
    seconds: float
    lines: list[Allocated]
    held_bytes: int
    """Bytes that all lines allocated and still hold, with those that are not listed."""
    peak_bytes: int
    """The most that was held at one time."""
    resident_bytes: int
    """Memory of the whole process at the end, native libraries included; 0 where the system does not tell."""
    is_cut: bool = False
    """Whether it ended early because watching took too much memory itself."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One part of an engine's step."""

    name: str
    start_us: int
    """Microseconds from the profile's begin to that of the phase."""
    us: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an engine: its phases on the host, and when the device computed it."""

    start_us: int
    us: int
    sequences: int
    """Sequences that were running after it."""
    tokens: int
    """Tokens that its batch computed."""
    phases: list[Phase] = field(default_factory=list)
    device: list[Phase] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsProfile:
    """The steps of an engine, in order."""

    process: str = ""
    pid: int
    seconds: float
    steps: list[Step]
    is_cut: bool = False
    """Whether it ended early because it had as many steps as it may hold."""


Profile = CpuProfile | MemoryProfile | StepsProfile

TYPES: Mapping[Kind, type[CpuProfile] | type[MemoryProfile] | type[StepsProfile]] = {
    Kind.CPU: CpuProfile,
    Kind.MEMORY: MemoryProfile,
    Kind.STEPS: StepsProfile,
}
"""The value that a profile of each kind is."""

"""Copies of KV blocks between the device and the shelf, as values that go with a step. Knows no memory and no files."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Consecutive full blocks of one sequence that come from slots of the shelf instead of being computed."""

    id: str
    arrival: int
    """Tells the sequence from a later one that is given the same id."""
    admission: int
    """Number of times that the sequence was given blocks: shows whether it still holds these."""
    first: int
    """Position of the first token in the blocks."""
    end: int
    """Tokens of the sequence that stand in its blocks once the copies are done."""
    slots: tuple[int, ...]
    block_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Save:
    """A full block of the device that is copied to a slot of the shelf."""

    block_id: int
    slot: int


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of a step. None of them touches a block that the same step computes or reads."""

    loads: tuple[Load, ...] = ()
    saves: tuple[Save, ...] = ()

    @property
    def num_loaded(self) -> int:
        return sum(len(load.slots) for load in self.loads)

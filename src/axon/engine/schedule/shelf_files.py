"""The port to the files of the shelf: blocks are written and read beside the steps. Knows no folder and no tensors."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Place:
    """A numbered place for one block in the files, and what is known of the block."""

    number: int
    key: bytes
    """The hash of the block's content, 16 bytes."""
    tag: bytes
    """Whose it is, 16 bytes or none: contents are erased by their tags."""
    at: float
    """Unix time at which the block came to the shelf."""


@dataclass(frozen=True, slots=True)
class News:
    """A write or a read that has ended."""

    key: bytes
    is_read: bool
    is_good: bool
    seconds: float = 0.0


class Files(Protocol):
    """Places of blocks that outlive the engine. Calls return at once; ``news`` says what was done."""

    @property
    def num_places(self) -> int: ...

    def contents(self) -> Iterable[Place]:
        """What the files held when they were opened."""
        ...

    def write(self, place: Place, slot: int) -> None:
        """Copies a slot of the host's memory to a place, in the order of calls."""
        ...

    def read(self, place: Place, slot: int) -> None:
        """Copies a place to a slot; bad news if the place does not hold that block, whole."""
        ...

    def erase(self, number: int) -> None:
        """Deletes what a place holds, behind the writes asked for before."""
        ...

    def news(self, wait_s: float = 0.0) -> list[News]:
        """What has ended since the last call; waits for some, no longer than this."""
        ...

    def close(self) -> None:
        """Does what was asked for, and lets the files go."""
        ...


class NoFiles:
    """The host's memory alone: there is no place."""

    num_places = 0

    def contents(self) -> Iterable[Place]:
        """Nothing."""
        return ()

    def write(self, place: Place, slot: int) -> None:
        """Is never asked."""
        raise AssertionError("there is no place to write to")

    def read(self, place: Place, slot: int) -> None:
        """Is never asked."""
        raise AssertionError("there is no place to read from")

    def erase(self, number: int) -> None:
        """Is never asked."""
        raise AssertionError("there is no place to erase")

    def news(self, wait_s: float = 0.0) -> list[News]:
        """None, at once."""
        return []

    def close(self) -> None:
        """Has nothing to let go."""

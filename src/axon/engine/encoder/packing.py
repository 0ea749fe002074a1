"""How inputs stand one below the other in a batch of rows, shortest first. Pure."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Group(NamedTuple):
    """A run of inputs of one length, which share a call of attention."""

    first_row: int
    num_inputs: int
    length: int


def by_length(batch: Sequence[Sequence[int]]) -> list[int]:
    """The places of the inputs, shortest first; those of one length stay in order."""
    return sorted(range(len(batch)), key=lambda place: len(batch[place]))


def put_back(places: Sequence[int], values: Iterable[T]) -> list[T]:
    """The values of inputs that were taken from these places, in the inputs' own order."""
    found = dict(zip(places, values, strict=True))
    return [found[place] for place in range(len(places))]


def spans_of(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """The first row of each input, and the row behind its last."""
    return list(pairwise(accumulate(lengths, initial=0)))


def groups_of(lengths: Sequence[int]) -> list[Group]:
    """The runs of neighbouring inputs of one length."""
    groups: list[Group] = []
    for (start, _), length in zip(spans_of(lengths), lengths, strict=True):
        if groups and groups[-1].length == length:
            groups[-1] = groups[-1]._replace(num_inputs=groups[-1].num_inputs + 1)
        else:
            groups.append(Group(start, 1, length))
    return groups

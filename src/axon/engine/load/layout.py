"""Where the engine's tensors lie in the files of each family. Pure functions of names and shapes; reads nothing."""

from typing import NamedTuple

from axon.engine.load.architecture import Architecture, Shapes


class Place(NamedTuple):
    """A tensor of a file, or rows ``start`` to ``stop`` of it."""

    name: str
    start: int = 0
    stop: int = 0
    """0: the whole tensor."""


def is_plain(architecture: Architecture) -> bool:
    """Whether the files have the engine's names, whole tensors, and norms as they are multiplied."""
    return not (architecture.family.file_names or architecture.family.norm_offset)


def place_of(name: str, architecture: Architecture) -> Place:
    """The place of one of the engine's tensors in the files."""
    for ours, theirs in architecture.family.file_names.items():
        name = name.replace(ours, theirs)
    return Place(name)


def file_shapes(architecture: Architecture) -> Shapes:
    """The tensors that a checkpoint must have, by the names of its files."""
    shapes: Shapes = {}
    for name, shape in architecture.tensor_shapes().items():
        shapes[place_of(name, architecture).name] = shape
    return shapes

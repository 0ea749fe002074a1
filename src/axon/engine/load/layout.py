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
    family = architecture.family
    return not (family.file_names or family.fused or family.norm_offset)


def place_of(name: str, architecture: Architecture) -> Place:
    """The place of one of the engine's tensors in the files."""
    for ours, theirs in architecture.family.file_names.items():
        name = name.replace(ours, theirs)
    module = name.split(".")[-2]
    for whole, parts in architecture.family.fused.items():
        if module in parts:
            sizes = [_num_outputs(part, architecture) for part in parts[: parts.index(module) + 1]]
            return Place(name.replace(module, whole), sum(sizes[:-1]), sum(sizes))
    return Place(name)


def file_shapes(architecture: Architecture) -> Shapes:
    """The tensors that a checkpoint must have, by the names of its files."""
    shapes: Shapes = {}
    for name, shape in architecture.tensor_shapes().items():
        place = place_of(name, architecture)
        num_before = shapes[place.name][0] if place.start else 0
        shapes[place.name] = (num_before + shape[0], *shape[1:])
    return shapes


def _num_outputs(module: str, architecture: Architecture) -> int:
    """Outputs of a matrix that may be part of a fused one."""
    heads = {"q_proj": architecture.num_heads, "k_proj": architecture.num_kv_heads, "v_proj": architecture.num_kv_heads}
    return heads[module] * architecture.head_dim if module in heads else architecture.intermediate_size

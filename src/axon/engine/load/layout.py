"""Where the engine's tensors lie in the files of each family. Pure functions of names and shapes; reads nothing."""

from typing import NamedTuple

from axon.engine.load.architecture import Architecture, Shapes


class Place(NamedTuple):
    """A tensor of a file, or rows ``start`` to ``stop`` of it, or those of one expert in a tensor of all."""

    name: str
    start: int = 0
    stop: int = 0
    """0: the whole tensor."""
    expert: int | None = None
    """The expert in a tensor of all experts; its outputs are every ``step``-th from ``start`` on."""
    step: int = 1


def is_plain(architecture: Architecture) -> bool:
    """Whether the files have the engine's names, whole tensors, and norms as they are multiplied."""
    family = architecture.family
    return not (family.file_names or family.fused or family.norm_offset or family.stacks_experts)


def place_of(name: str, architecture: Architecture) -> Place:
    """The place of one of the engine's tensors in the files."""
    for ours, theirs in architecture.family.file_names.items():
        name = name.replace(ours, theirs)
    module = name.split(".")[-2]
    if architecture.family.stacks_experts and ".experts." in name:
        return _stacked_place(name)
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
        if place.expert is not None:
            shapes[place.name] = _stacked_shape(shape, place, architecture)
            continue
        num_before = shapes[place.name][0] if place.start else 0
        shapes[place.name] = (num_before + shape[0], *shape[1:])
    return shapes


def _stacked_place(name: str) -> Place:
    """``….experts.3.up_proj.bias`` is in ``….experts.gate_up_proj_bias``, at the second of every two outputs."""
    prefix, expert, module, kind = name.rsplit(".", 3)
    whole = "down_proj" if module == "down_proj" else "gate_up_proj"
    suffix = "_bias" if kind == "bias" else ""
    step = 2 if whole == "gate_up_proj" else 1
    return Place(f"{prefix}.{whole}{suffix}", int(module == "up_proj"), 0, int(expert), step)


def _stacked_shape(shape: tuple[int, ...], place: Place, architecture: Architecture) -> tuple[int, ...]:
    """The shape of the tensor of all experts; matrices have their inputs first there."""
    assert architecture.experts is not None
    return (architecture.experts.count, *shape[1:], place.step * shape[0])


def _num_outputs(module: str, architecture: Architecture) -> int:
    """Outputs of a matrix that may be part of a fused one."""
    heads = {"q_proj": architecture.num_heads, "k_proj": architecture.num_kv_heads, "v_proj": architecture.num_kv_heads}
    return heads[module] * architecture.head_dim if module in heads else architecture.intermediate_size

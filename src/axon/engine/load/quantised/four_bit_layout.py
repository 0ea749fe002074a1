"""Matrices that a published checkpoint keeps in four bits by AWQ or GPTQ. Knows no model, loads nothing.

A matrix ``NAME.weight`` [output, input] is several tensors: ``NAME.qweight`` with eight numbers from 0 to 15 in each
int32, ``NAME.qzeros`` with zero points packed alike, ``NAME.scales``, and with GPTQ ``NAME.g_idx``, the group of each
input. A group is some inputs, mostly 128, that have a scale and a zero point for each output. The number that q stands
for is (q - zero) * scale.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from axon.errors import UnknownModel

NUMBERS = 8
"""Numbers in an int32."""
OPTIONAL = ("g_idx",)
"""Parts that a matrix may lack: its groups are then one after the other."""
_WEIGHT = ".weight"


@dataclass(frozen=True, slots=True, kw_only=True)
class FourBits:
    """How a checkpoint packs its matrices."""

    method: Literal["awq", "gptq"]
    """AWQ packs eight outputs into an int32, in an order of its own; GPTQ eight inputs, one after the other."""
    group_size: int
    """Inputs of a group; 0 if all inputs of a matrix are one."""
    zero_offset: int = 0
    """What is added to a zero point: GPTQ's first format has them less one."""

    def num_groups(self, num_inputs: int) -> int:
        """Groups of a matrix with so many inputs."""
        return -(-num_inputs // self.group_size) if self.group_size else 1

    def part_shapes(self, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        """The shapes of a matrix's tensors, by what stands in the place of ``weight`` in its name."""
        outputs, inputs = shape
        groups = self.num_groups(inputs)
        if self.method == "awq":
            shapes: dict[str, tuple[int, ...]] = {"qweight": (inputs, outputs // NUMBERS)}
        else:
            shapes = {"qweight": (inputs // NUMBERS, outputs), "g_idx": (inputs,)}
        return shapes | {"qzeros": (groups, outputs // NUMBERS), "scales": (groups, outputs)}


def part_of(name: str, part: str) -> str:
    """The name of a part of the matrix ``name``."""
    return f"{name.removesuffix(_WEIGHT)}.{part}"


def read_four_bits(quantisation: Mapping[str, Any]) -> FourBits:
    """Reads the ``quantization_config`` of a config.json whose method is AWQ or GPTQ; raises ``Misconfigured``."""
    method = quantisation.get("quant_method")
    problem = _awq_problem(quantisation) if method == "awq" else _gptq_problem(quantisation)
    if problem := problem or _size_problem(quantisation):
        raise UnknownModel(
            f"a folder quantised by {method} so is not supported: {problem}. Four bits are read as AutoAWQ (gemm) and "
            "GPTQ write them by default; give the model so, in bfloat16, or as a GGUF file"
        )
    group_size = max(0, int(quantisation["group_size"]))
    if method == "awq":
        return FourBits(method="awq", group_size=group_size)
    is_first_format = quantisation.get("checkpoint_format", "gptq") == "gptq"
    return FourBits(method="gptq", group_size=group_size, zero_offset=int(is_first_format))


def _size_problem(quantisation: Mapping[str, Any]) -> str:
    if quantisation.get("bits") != 4:
        return f"its numbers have {quantisation.get('bits')} bits"
    size = quantisation.get("group_size")
    if type(size) is int and (size == -1 or (size > 0 and size % NUMBERS == 0)):
        return ""
    return f"its groups are {size!r}"


def _awq_problem(quantisation: Mapping[str, Any]) -> str:
    if str(quantisation.get("version", "gemm")).lower() != "gemm":
        return f"its version is {quantisation['version']!r}"
    if not quantisation.get("zero_point", True):
        return "it has no zero points"
    return ""


def _gptq_problem(quantisation: Mapping[str, Any]) -> str:
    if quantisation.get("checkpoint_format", "gptq") not in ("gptq", "gptq_v2"):
        return f"its format is {quantisation['checkpoint_format']!r}"
    return ""

"""How a published checkpoint is quantised, from the ``quantization_config`` of its config.json. Loads nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axon.engine.load.quantised.four_bit_layout import FourBits, read_four_bits
from axon.engine.load.quantised.fp8_layout import check_fp8

_FOUR_BITS = ("awq", "gptq")


def check_quantisation(quantisation: Mapping[str, Any], *, has_mxfp4: bool = False) -> None:
    """Raises ``Misconfigured`` unless this is a layout that the engine reads; MXFP4 only where the family has it."""
    if is_four_bits(quantisation):
        read_four_bits(quantisation)
    elif not (has_mxfp4 and is_mxfp4(quantisation)):
        check_fp8(quantisation)


def is_mxfp4(quantisation: Mapping[str, Any] | None) -> bool:
    """Whether the matrices of its experts are in MXFP4."""
    return (quantisation or {}).get("quant_method") == "mxfp4"


def is_four_bits(quantisation: Mapping[str, Any] | None) -> bool:
    """Whether its matrices are in four bits."""
    return (quantisation or {}).get("quant_method") in _FOUR_BITS


def is_fp8(quantisation: Mapping[str, Any] | None) -> bool:
    """Whether its matrices are in fp8."""
    return bool(quantisation) and not is_four_bits(quantisation) and not is_mxfp4(quantisation)


def four_bits_of(model_dir: Path) -> FourBits | None:
    """How the matrices of a folder are packed into four bits; None if they are not."""
    config = json.loads((model_dir / "config.json").read_text(encoding="utf-8"))
    quantisation = config.get("quantization_config")
    return read_four_bits(quantisation) if is_four_bits(quantisation) else None

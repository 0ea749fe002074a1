"""Tensors as float32 arrays, whatever float they are kept as."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from axon.engine.load.arrays import Arrays
from axon.errors import Misconfigured


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_tensor_is_read_as_torch_reads_it(tmp_path: Path, dtype: torch.dtype) -> None:
    values = torch.randn(3, 5, generator=torch.Generator().manual_seed(1)).to(dtype)
    save_file({"bert.first": torch.zeros(7), "bert.weight": values}, tmp_path / "model.safetensors")
    found = Arrays(tmp_path, "bert.").take("weight")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, values.float().numpy())


def test_what_is_missing_or_quantised_is_named(tmp_path: Path) -> None:
    save_file({"small": torch.zeros(2, dtype=torch.int8)}, tmp_path / "model.safetensors")
    with pytest.raises(Misconfigured, match="no tensor 'other'"):
        Arrays(tmp_path).take("other")
    with pytest.raises(Misconfigured, match=r"quantised \(I8\)"):
        Arrays(tmp_path).take("small")

"""Weights of a given shape, made on a GPU. What their values are does not matter to their speed."""

from collections.abc import Iterable
from typing import Any

import torch

from axon.engine.load.quantised.four_bit_layout import FourBits
from axon.engine.load.quantised.four_bit_matrices import FourBitParts

_GPTQ = FourBits(method="gptq", group_size=128, zero_offset=1)


class RandomWeights:
    """Weights by name, made on the device: what their values are does not matter to their speed."""

    def __init__(self, config: dict[str, Any], dtype: torch.dtype, *, four_bits: bool = False) -> None:
        self._dtype = dtype
        self._four_bits = four_bits
        self._heads = config["num_attention_heads"] * config["head_dim"]
        self._kv_heads = config["num_key_value_heads"] * config["head_dim"]
        self._config = config
        self._generator = torch.Generator("cuda").manual_seed(0)

    def take(self, name: str) -> torch.Tensor:
        """A matrix of small numbers, a norm around one."""
        shape = self._shape(name)
        values = torch.empty(shape, dtype=self._dtype, device="cuda")
        if "norm" in name:
            return values.uniform_(0.8, 1.2, generator=self._generator)
        return values.normal_(0, 0.5 if "embed" in name else 0.02, generator=self._generator)

    def take_fp8(self, names: Iterable[str]) -> None:
        """Nothing: these weights are not fp8 yet."""

    def take_four_bits(self, names: Iterable[str]) -> FourBitParts | None:
        """Matrices as GPTQ packs them with groups of 128, if these weights are in four bits."""
        return (_GPTQ, [self._packed(*self._shape(name)) for name in names]) if self._four_bits else None

    def _packed(self, outputs: int, inputs: int) -> dict[str, torch.Tensor]:
        def words(*shape: int) -> torch.Tensor:
            made = torch.empty(shape, dtype=torch.int32, device="cuda")
            return made.random_(-(2**31), 2**31 - 1, generator=self._generator)

        groups = inputs // _GPTQ.group_size
        scales = torch.empty(groups, outputs, dtype=torch.float16, device="cuda")
        return {
            "qweight": words(inputs // 8, outputs),
            "qzeros": torch.full((groups, outputs // 8), 0x77777777, dtype=torch.int32, device="cuda"),
            "scales": scales.uniform_(0.003, 0.006, generator=self._generator),
        }

    def take_stacked(self, names: Iterable[str]) -> torch.Tensor:
        """Several, one below the other."""
        return torch.cat([self.take(name) for name in names])

    def _shape(self, name: str) -> tuple[int, ...]:
        hidden, inner = self._config["hidden_size"], self._config["intermediate_size"]
        if ".experts." in name:
            inner = self._config["moe_intermediate_size"]
        if name.endswith("mlp.gate.weight"):
            return (self._config["num_experts"], hidden)
        if "q_norm" in name or "k_norm" in name:
            return (self._config["head_dim"],)
        if "norm" in name:
            return (hidden,)
        if "embed_tokens" in name or "lm_head" in name:
            return (self._config["vocab_size"], hidden)
        shapes = {
            "q_proj": (self._heads, hidden), "k_proj": (self._kv_heads, hidden), "v_proj": (self._kv_heads, hidden),
            "o_proj": (hidden, self._heads), "gate_proj": (inner, hidden), "up_proj": (inner, hidden),
            "down_proj": (hidden, inner),
        }  # fmt: skip
        return shapes[name.split(".")[-2]]

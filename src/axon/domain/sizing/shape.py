"""A model's shape, as far as its memory and speed follow from it. Pure functions; reads no file."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A decoder of the Llama family."""

    name: str
    num_parameters: int
    """All of them: every expert of a mixture of experts is in memory."""
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_context: int
    num_idle_parameters: int = 0
    """Those of the experts that a token is not computed with."""

    @property
    def num_active_parameters(self) -> int:
        """Parameters that one token is computed with."""
        return self.num_parameters - self.num_idle_parameters

    def weight_bytes(self, *, int8: bool) -> float:
        """Bytes of the weights: one for a parameter in int8, two in bfloat16."""
        return self.num_parameters * (1.0 if int8 else 2.0)

    def fp8_weight_bytes(self) -> float:
        """Bytes of the weights in fp8: embedding and head stay in bfloat16, which is an eighth more for 8B."""
        return self.num_parameters * 1.15

    def kv_bytes(self, *, int8: bool) -> float:
        """Bytes of keys and values of one token. In int8 each head has a scale of four bytes."""
        each = self.head_dim + 4 if int8 else 2 * self.head_dim
        return 2.0 * self.num_layers * self.num_kv_heads * each


KNOWN = {
    shape.name: shape
    for shape in (
        Shape(
            name="smollm2-135m",
            num_parameters=134_515_008,
            num_layers=30,
            num_heads=9,
            num_kv_heads=3,
            head_dim=64,
            max_context=8192,
        ),
        Shape(
            name="qwen3-0.6b",
            num_parameters=596_049_920,
            num_layers=28,
            num_heads=16,
            num_kv_heads=8,
            head_dim=128,
            max_context=40_960,
        ),
        Shape(
            name="llama-3-8b",
            num_parameters=8_030_261_248,
            num_layers=32,
            num_heads=32,
            num_kv_heads=8,
            head_dim=128,
            max_context=8192,
        ),
        Shape(
            name="llama-3-70b",
            num_parameters=70_553_706_496,
            num_layers=80,
            num_heads=64,
            num_kv_heads=8,
            head_dim=128,
            max_context=8192,
        ),
    )
}
"""Shapes that need no file."""

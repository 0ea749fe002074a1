"""What engines compute on, as far as it is sized. Values only."""

from enum import StrEnum


class Device(StrEnum):
    H200 = "h200"
    """In bfloat16."""
    H200_FP8 = "h200-fp8"
    """Weights in fp8, KV blocks in bfloat16, on one GPU."""
    CPU = "cpu"
    """Two cores of a Neoverse-N1, in int8."""

    @property
    def is_gpu(self) -> bool:
        return self is not Device.CPU

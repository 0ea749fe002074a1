"""What engines compute on, as far as it is sized. Values only."""

from enum import StrEnum


class Device(StrEnum):
    H200 = "h200"
    CPU = "cpu"
    """Two cores of a Neoverse-N1, in int8."""

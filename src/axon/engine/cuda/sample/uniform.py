"""The random numbers of ``axon.engine.sample.uniform`` for many draws at once, in numpy."""

import numpy as np
import numpy.typing as npt

from axon.engine.sample.uniform import GOLDEN, MASK, mix

States = npt.NDArray[np.uint64]


def first_state(seed: int, choice: int) -> int:
    """The generator's state of a choice, before the position is mixed in."""
    return mix(mix(seed & MASK) ^ (choice & MASK))


def uniforms(states: States, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The number in [0, 1) of each position; ``states`` come from ``first_state``."""
    value = (states ^ positions.astype(np.uint64)) + np.uint64(GOLDEN)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    value = value ^ (value >> np.uint64(31))
    return (value >> np.uint64(11)).astype(np.float64) * 2.0**-53

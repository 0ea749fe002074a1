"""A counter-based random number generator: no state, so that a replayed draw gives the same token."""

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def uniform(seed: int, choice: int, position: int) -> float:
    """The number in [0, 1) of an output position of a choice."""
    state = mix(seed & MASK)
    state = mix(state ^ (choice & MASK))
    state = mix(state ^ (position & MASK))
    return (state >> 11) * 2.0**-53


def mix(value: int) -> int:
    """One output of SplitMix64, which passes BigCrush on a plain counter."""
    value = (value + GOLDEN) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)

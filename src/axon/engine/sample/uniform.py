"""Random numbers without state: a draw is a function of what it is for, so a replayed token is the same token."""

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def uniform(seed: int, choice: int, position: int) -> float:
    """Returns the number in [0, 1) that belongs to this output position of this choice."""
    state = mix(seed & MASK)
    state = mix(state ^ (choice & MASK))
    state = mix(state ^ (position & MASK))
    return (state >> 11) * 2.0**-53


def mix(value: int) -> int:
    """One output of splitmix64, which passes BigCrush on a plain counter."""
    value = (value + GOLDEN) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)

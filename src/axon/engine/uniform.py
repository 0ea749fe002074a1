"""Random numbers without state: a draw is a function of what it is for, so a replayed token is the same token."""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15


def uniform(seed: int, choice: int, position: int) -> float:
    """Returns the number in [0, 1) that belongs to this output position of this choice."""
    state = _mix(seed & _MASK)
    state = _mix(state ^ (choice & _MASK))
    state = _mix(state ^ (position & _MASK))
    return (state >> 11) * 2.0**-53


def _mix(value: int) -> int:
    """One output of splitmix64, which passes BigCrush on a plain counter."""
    value = (value + _GOLDEN) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)

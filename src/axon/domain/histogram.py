"""Durations counted by bucket, and the duration below which a share of them stays. Functions of their arguments alone.

The counts are of each bucket alone, not cumulative. There is one more count than bounds: the last is of durations above
the highest bound. Zeros at the end may be left out.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, zip_longest

BOUNDS = tuple(0.001 * 2 ** (number / 4) for number in range(73))
"""Upper bounds in seconds of the buckets that workers announce: from 1 ms to 262 s, four to a doubling. They never
change, because workers of several releases are added up; others need another field."""


def bucket_of(seconds: float, bounds: Sequence[float] = BOUNDS) -> int:
    """Index of the bucket that a duration falls into."""
    return bisect_left(bounds, seconds)


def trimmed(counts: Sequence[int]) -> tuple[int, ...]:
    """The counts without zeros at the end."""
    length = len(counts)
    while length and not counts[length - 1]:
        length -= 1
    return tuple(counts[:length])


def summed(*several: Sequence[int]) -> tuple[int, ...]:
    """The counts of several histograms with the same bounds together."""
    return tuple(sum(each) for each in zip_longest(*several, fillvalue=0))


def grown(before: Sequence[int], after: Sequence[int]) -> tuple[int, ...]:
    """What was counted between two readings; if a count has decreased, it began anew, and all of it is new."""
    pairs = list(zip_longest(before, after, fillvalue=0))
    if any(new < old for old, new in pairs):
        return trimmed(after)
    return trimmed([new - old for old, new in pairs])


def quantile(counts: Sequence[int], share: float, bounds: Sequence[float] = BOUNDS) -> float | None:
    """The duration that ``share`` of those counted do not exceed, as if they lay evenly within each bucket.

    None where nothing was counted. Durations above the highest bound count as the bound itself.
    """
    total = sum(counts)
    if total <= 0:
        return None
    wanted = share * total
    for index, reached in enumerate(accumulate(counts)):
        if reached >= wanted and counts[index]:
            if index >= len(bounds):
                return bounds[-1]
            low, high = bounds[index - 1] if index else 0.0, bounds[index]
            inside = (wanted - (reached - counts[index])) / counts[index]
            return low + (high - low) * min(1.0, max(0.0, inside))
    return bounds[-1]

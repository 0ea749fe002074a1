"""Samples of one version in a rollout: cumulative counts and latency histograms. Knows no gateway and no verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil, floor, log

import msgspec

GROWTH = 1.25 ** (1 / 4)
"""Factor from one bucket of a histogram to the next, about 1.057."""
_HALF_A_BUCKET = 1.25 ** (1 / 8)
_FIRST_S = 1e-4
_LAST = 320
"""Index of the last bucket, which begins at about 5,600 seconds."""


class Outcome(StrEnum):
    """How a turn ended, as the comparison of versions counts it."""

    OK = "ok"
    """Completed, or failed for a fault of the request: nothing against the version."""
    LEFT = "left"
    """Its client stopped it or left: nothing against the version once it had its first token."""
    EXPIRED = "expired"
    """Passed its deadline: nothing against the version if it spoke until then, so was too long by itself."""
    ERROR = "error"
    """Failed for a fault of the server."""


def bucket_of_latency(seconds: float) -> int:
    """The bucket of a latency: bucket ``i`` begins at 0.1 ms × ``GROWTH`` to the power of ``i``."""
    if seconds <= _FIRST_S:
        return 0
    return min(_LAST, floor(log(seconds / _FIRST_S) / log(GROWTH)))


def latency_of(bucket: int) -> float:
    """The lower bound of a bucket in seconds."""
    latency_s: float = _FIRST_S * GROWTH**bucket
    return latency_s


def buckets_of_factor(factor: float) -> int:
    """The smallest number of buckets by which a latency grows at least by ``factor``."""
    return max(0, ceil(log(factor) / log(GROWTH) - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Cumulative counts of a version since the rollout began. Every count only grows."""

    begun: int = 0
    """Turns that were accepted."""
    errors: int = 0
    refused: int = 0
    """Sessions' first turns that were refused after it was decided that this version answers them."""
    mute: int = 0
    """Accepted turns that had no first token after the tolerance's ``mute_s`` seconds and had not ended, or whose
    client left before the first token."""
    ttft: Mapping[int, int] = field(default_factory=dict)
    """Times to the first token of sessions' first turns: bucket → number. Later turns have longer prompts on an old
    version than on a new one, whose sessions are all young, so they are left out."""
    itl: Mapping[int, int] = field(default_factory=dict)
    """Mean times between tokens of sessions' first turns: bucket → number."""

    def __add__(self, other: "Samples") -> "Samples":
        return Samples(
            begun=self.begun + other.begun,
            errors=self.errors + other.errors,
            refused=self.refused + other.refused,
            mute=self.mute + other.mute,
            ttft=_added(self.ttft, other.ttft),
            itl=_added(self.itl, other.itl),
        )

    def since(self, earlier: "Samples") -> "Samples":
        """What was added after an earlier state of the same counts."""
        return Samples(
            begun=max(0, self.begun - earlier.begun),
            errors=max(0, self.errors - earlier.errors),
            refused=max(0, self.refused - earlier.refused),
            mute=max(0, self.mute - earlier.mute),
            ttft=_taken(self.ttft, earlier.ttft),
            itl=_taken(self.itl, earlier.itl),
        )


def _added(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    """Both together. A look adds a few buckets to hundreds, which are copied and not counted again."""
    found = dict(one)
    for bucket, num in other.items():
        found[bucket] = found.get(bucket, 0) + num
    return found


def _taken(now: Mapping[int, int], earlier: Mapping[int, int]) -> dict[int, int]:
    return {bucket: num - before for bucket, num in now.items() if num > (before := earlier.get(bucket, 0))}


def median_of(histogram: Mapping[int, int]) -> float | None:
    """The median latency in seconds, by the bucket that it is in; None without samples."""
    left = sum(histogram.values()) / 2
    for bucket in sorted(histogram):
        left -= histogram[bucket]
        if left <= 0:
            return latency_of(bucket) * _HALF_A_BUCKET
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Samples of both versions of one rollout, as one gateway has observed them."""

    old: Samples = field(default_factory=Samples)
    new: Samples = field(default_factory=Samples)

    def __add__(self, other: "Observed") -> "Observed":
        return Observed(old=self.old + other.old, new=self.new + other.new)

    def since(self, earlier: "Observed") -> "Observed":
        """What was added after an earlier state of the same counts."""
        return Observed(old=self.old.since(earlier.old), new=self.new.since(earlier.new))


def encode(observed: Observed) -> bytes:
    """The observed samples as msgpack."""
    return msgspec.msgpack.encode(observed)


def decode(data: bytes) -> Observed:
    """The samples in these bytes; fields of a later release are left out. Raises ``msgspec.DecodeError``."""
    return msgspec.msgpack.decode(data, type=Observed)

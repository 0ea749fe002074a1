"""Which engine has the next time slice of cores that several share: fair queueing by seconds. Pure functions.

An engine's counter is the seconds of its slices over its weight, and the smallest counter of those that wait goes next
(start-time fair queueing). All engines share a level, the largest counter that a slice has begun with. An engine that
comes back from idleness, or is new, is lifted to the level less a credit: what it did not ask for is not owed to it,
and a single short request does not wait for a whole round of a flood beside it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

CREDIT_S = 0.02
"""Seconds that an engine may have had less than the others when it comes back from idleness, and so goes first for."""
MOST_OWED_S = 1.0
"""Seconds that the counter of an engine with work is away from the level at most, whatever stood on the board."""
LEAST_SLICE_S = 0.002
"""Seconds of a time slice before which it is not passed on: a change of engines costs some 0.1 ms."""


class State(IntEnum):
    """What an engine wants of the cores."""

    IDLE = 0
    WAITING = 1
    HOLDING = 2
    BETWEEN = 3
    """It has work, and does something else than compute for a moment: it sends what it computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One engine's claim to the cores."""

    slot: int
    """Its number among the engines of these cores."""
    state: State
    had_s: float
    """Its counter: the seconds of its slices over its weight."""


def next_slice(claims: Iterable[Claim]) -> Claim | None:
    """The claim that gets the next time slice: of those that wait, the one that had the least; None if none waits."""
    waiting = [claim for claim in claims if claim.state is State.WAITING]
    return min(waiting, key=lambda claim: (claim.had_s, claim.slot), default=None)


def begins(mine: Claim, level_s: float) -> Claim:
    """The claim of an engine that wants a time slice for its next step."""
    if not math.isfinite(level_s):
        return replace(mine, state=State.WAITING)
    behind_s = CREDIT_S if mine.state is State.IDLE else MOST_OWED_S
    had_s = min(max(mine.had_s, level_s - behind_s), level_s + MOST_OWED_S)
    return replace(mine, state=State.WAITING, had_s=had_s)


def raised(level_s: float, began_s: float) -> float:
    """The level after a slice has begun with the counter ``began_s``."""
    return max(began_s, level_s) if math.isfinite(level_s) else began_s


def passes_on(mine: Claim, held_s: float, weight: float, claims: Iterable[Claim]) -> bool:
    """Whether an engine in the middle of its time slice, ``held_s`` seconds long by now, lets another one go first."""
    waits = next_slice(claim for claim in claims if claim.slot != mine.slot)
    return waits is not None and held_s >= LEAST_SLICE_S and waits.had_s < mine.had_s + held_s / weight


def in_the_way(mine: Claim, before: Iterable[Claim], now: Iterable[Claim]) -> frozenset[Claim]:
    """The claims that kept ``mine`` from its time slice and did not change meanwhile: their engines hang, it seems."""
    order = (mine.had_s, mine.slot)
    return frozenset(before) & {
        claim
        for claim in now
        if claim.slot != mine.slot
        and (claim.state is State.HOLDING or (claim.state is State.WAITING and (claim.had_s, claim.slot) < order))
    }

"""Which groups run on a machine that has not room for all: models are swapped by who waits and who is asked. Pure.

Places are given in this order: groups that must not go cold; those that began a moment ago; those that have waited too
long; those with work; those that wait; those that are idle, the one that was asked last first. So an idle group makes
room at once for one that is asked, a busy one only for one that has waited for ``max_wait_s``, and one that has just
begun for nobody.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum

from axon.domain.fleet.replica import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A group that wants replicas on the machine."""

    group: Group
    wanted: int
    """Replicas that it wants; none makes it no rival."""
    has: int
    """Replicas that run or start."""
    num_bytes: int
    """Memory of one of its replicas."""
    has_work: bool = False
    """Whether a turn of it waits or runs."""
    stays: bool = False
    """Whether it must not go cold."""
    last_asked: float = 0.0
    """Unix time of its last request; 0 where none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapRules:
    """The bounds of swapping."""

    max_wait_s: float = 10.0
    """Seconds for which a group with work may wait for a place before one with work that runs makes room for it."""
    min_run_s: float = 5.0
    """Seconds for which a group that was started stays, whoever waits."""
    max_swaps: int = 12
    """Most groups that make room for others in a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapMemory:
    """What is remembered between looks; lost, it delays swaps and nothing else."""

    began: Mapping[Group, float] = field(default_factory=dict)
    """Monotonic time at which each group that runs was first seen to run."""
    waits: Mapping[Group, float] = field(default_factory=dict)
    """Monotonic time since which each group with work has had no replica."""
    leaves: frozenset[Group] = frozenset()
    """Groups that were told to make room and still run."""
    swaps: tuple[float, ...] = ()
    """Monotonic times of the swaps of the last minute."""


@dataclass(frozen=True, slots=True)
class Seat:
    """How many replicas of a group the machine has room for now."""

    count: int
    reason: str = ""
    """Why it has fewer than it wants, in words; empty if it has all."""


class _Rank(IntEnum):
    STAYS = 0
    YOUNG = 1
    OVERDUE = 2
    WORKS = 3
    WAITS = 4
    IDLE = 5


_MINUTE_S = 60.0


def seats(
    rivals: Sequence[Rival], memory: SwapMemory, *, room_bytes: int, now: float, rules: SwapRules | None = None
) -> tuple[Mapping[Group, Seat], SwapMemory]:
    """Gives the memory of the machine to the groups: one replica to each in order, then further ones in that order.

    ``room_bytes`` is all that replicas may have together. A seat is a right and no order: whoever has none keeps its
    memory until it is gone, and the caller starts nothing before. ``now`` is in seconds of a monotonic clock.
    """
    rules = rules or SwapRules()
    rivals = [each for each in rivals if each.wanted > 0]
    memory = _seen(rivals, memory, now)
    order = sorted(rivals, key=lambda each: _place(each, memory, now, rules))
    counts = _filled(order, room_bytes, held=_held(order, memory, rules))
    leaves = frozenset(each.group for each in rivals if each.has and not counts[each.group])
    swaps = (*memory.swaps, *(now for _ in leaves - memory.leaves))
    given = {each.group: Seat(counts[each.group], _reason(each, counts[each.group], memory, now)) for each in rivals}
    return given, replace(memory, leaves=leaves, swaps=swaps)


def _seen(rivals: Sequence[Rival], memory: SwapMemory, now: float) -> SwapMemory:
    return SwapMemory(
        began={each.group: memory.began.get(each.group, now) for each in rivals if each.has},
        waits={each.group: memory.waits.get(each.group, now) for each in rivals if each.has_work and not each.has},
        leaves=memory.leaves & {each.group for each in rivals if each.has},
        swaps=tuple(at for at in memory.swaps if now - at < _MINUTE_S),
    )


def _place(rival: Rival, memory: SwapMemory, now: float, rules: SwapRules) -> tuple[int, float, Group]:
    group = rival.group
    if rival.stays:
        return _Rank.STAYS, -rival.has, group
    if rival.has and now - memory.began[group] < rules.min_run_s:
        return _Rank.YOUNG, memory.began[group], group
    if group in memory.waits:
        since = memory.waits[group]
        return (_Rank.OVERDUE if now - since >= rules.max_wait_s else _Rank.WAITS), since, group
    if rival.has and rival.has_work:
        return _Rank.WORKS, -memory.began[group], group
    return _Rank.IDLE, -rival.last_asked, group


def _held(order: Sequence[Rival], memory: SwapMemory, rules: SwapRules) -> frozenset[Group]:
    """The groups that run and keep their place, because no more swaps are allowed in this minute."""
    running = [each.group for each in order if each.has and each.group not in memory.leaves]
    may_leave = max(0, rules.max_swaps - len(memory.swaps))
    return frozenset(running[: max(0, len(running) - may_leave)])


def _filled(order: Sequence[Rival], room_bytes: int, *, held: frozenset[Group]) -> dict[Group, int]:
    order = sorted(order, key=lambda each: each.group not in held)
    counts = dict.fromkeys((each.group for each in order), 0)
    for most in range(1, max((each.wanted for each in order), default=0) + 1):
        for each in order:
            if each.wanted >= most and counts[each.group] == most - 1 and each.num_bytes <= room_bytes:
                counts[each.group] = most
                room_bytes -= each.num_bytes
    return counts


def _reason(rival: Rival, count: int, memory: SwapMemory, now: float) -> str:
    if count >= rival.wanted:
        return ""
    if count:
        return f"the machine has room for {count} of {rival.wanted}"
    if rival.has:
        return "it makes room for another model"
    waited = f", for {now - memory.waits[rival.group]:.0f} s now" if rival.group in memory.waits else ""
    return f"the machine has no room: it waits for a place{waited}"

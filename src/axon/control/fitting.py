"""Targets that fit into a machine: where there is not room for all models, they are swapped. Decides in pure functions.

It stands between the targets and the reconciler, and is used where the launcher runs replicas on one machine.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from axon.control.reconciler import Targets
from axon.domain.fleet.desired import Wanted, meant
from axon.domain.fleet.replica import Group, LaunchState
from axon.domain.fleet.sight import Sight, Target
from axon.domain.fleet.swapping import Rival, Seat, SwapMemory, SwapRules, seats
from axon.runtime.clock import Clock


class FittedTargets:
    """A ``Targets`` of one reign of a leader."""

    def __init__(self, targets: Targets, room_bytes: int, rules: SwapRules, clock: Clock) -> None:
        """``room_bytes`` is the memory that all replicas may have together. One whose deployment does not say how much
        it needs counts as a fourth of that."""
        self._targets, self._room_bytes, self._rules, self._clock = targets, room_bytes, rules, clock
        self._memory = SwapMemory()

    async def __call__(self, sight: Sight) -> Mapping[Group, Target]:
        targets = await self._targets(sight)
        if sight.launched is None:
            return targets
        has = Counter(each.name.group for each in sight.launched if each.state is not LaunchState.STOPPING)
        rivals = [
            self._rival(sight, group, of, target, has[group])
            for group, target in targets.items()
            if (of := meant(sight.snapshot, group)) is not None
        ]
        now = self._clock.monotonic()
        given, self._memory = seats(rivals, self._memory, room_bytes=self._room_bytes, now=now, rules=self._rules)
        return {**targets, **self._in_place(sight, rivals, targets, given)}

    def _in_place(
        self, sight: Sight, rivals: Sequence[Rival], targets: Mapping[Group, Target], given: Mapping[Group, Seat]
    ) -> Mapping[Group, Target]:
        """The targets of the groups that do not have all they want. A replica starts when the memory for it is free:
        one that makes room keeps its own until it is gone. Who has waited longest comes first."""
        free = self._room_bytes - sum(self._bytes(each.spec.memory_bytes) for each in sight.launched or ())
        fitted: dict[Group, Target] = {}
        for rival in sorted(rivals, key=lambda each: self._memory.waits.get(each.group, float("inf"))):
            seat = given.get(rival.group, Seat(0))
            more = max(0, min(seat.count - rival.has, max(0, free) // rival.num_bytes))
            count = min(seat.count, rival.has + more)
            free -= more * rival.num_bytes
            if count < targets[rival.group].count:
                reason = seat.reason or "its memory is not free yet"
                fitted[rival.group] = Target(count, reason, is_full=True, most=seat.count)
        return fitted

    def _rival(self, sight: Sight, group: Group, of: Wanted, target: Target, has: int) -> Rival:
        demand, deployment = sight.demand_of(group), of.deployment
        return Rival(
            group=group,
            wanted=target.count,
            has=has,
            num_bytes=self._bytes(of.spec.memory_bytes),
            has_work=demand is None or bool(demand),
            stays=deployment.hot or deployment.least_replicas(self._clock.now()) > 0,
            last_asked=demand.last_asked or 0.0 if demand else 0.0,
        )

    def _bytes(self, stated: int) -> int:
        return stated or self._room_bytes // 4

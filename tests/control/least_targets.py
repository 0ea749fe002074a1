"""Targets without an autoscaler: the least that the registry asks for. The autoscaler's own begin with the same."""

from collections.abc import Mapping

from axon.domain.fleet.desired import Idle, least
from axon.domain.fleet.replica import Group
from axon.domain.fleet.sight import Sight, Target
from axon.runtime.clock import Clock


class LeastTargets:
    """A ``Targets`` of one reign of a leader."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._idle = clock, Idle()

    async def __call__(self, sight: Sight) -> Mapping[Group, Target]:
        targets, self._idle = least(sight, self._idle, now=self._clock.monotonic(), at=self._clock.now())
        return targets

"""Recommends and launches nothing: for fleets that KEDA, an HPA or a person scales by ``axon_replicas``.

What it lists is what it was told shall run. Whether it does, the workers' presences say.
"""

from collections.abc import Sequence

from axon.domain.fleet.replica import Launched, LaunchState, ReplicaName, ReplicaSpec
from axon.errors import StaleTerm
from axon.runtime.clock import Clock


class ExternalLauncher:
    """A ``Launcher`` that keeps its recommendation in memory: the next leader finds it again by the same signals."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[ReplicaName, Launched] = {}
        self._term = 0

    async def list(self) -> Sequence[Launched]:
        return tuple(self._told.values())

    async def ensure(self, name: ReplicaName, spec: ReplicaSpec, *, term: int) -> None:
        self._check(term)
        self._told.setdefault(
            name,
            Launched(
                name=name,
                incarnation=f"{name}@{self._clock.now():.3f}",
                spec=spec,
                state=LaunchState.RUNNING,
                since=self._clock.now(),
            ),
        )

    async def stop(self, name: ReplicaName, incarnation: str, *, term: int) -> None:
        self._check(term)
        told = self._told.get(name)
        if told is not None and told.incarnation == incarnation:
            del self._told[name]

    def _check(self, term: int) -> None:
        if term < self._term:
            raise StaleTerm(f"The order is of term {term}, and term {self._term} has begun.")
        self._term = term

"""Launcher: starts and stops replicas somewhere. It decides nothing: names that shall run are told to it."""

from collections.abc import Sequence
from typing import Protocol

from axon.domain.fleet.replica import Launched, ReplicaName, ReplicaSpec


class Launcher(Protocol):
    """Both orders are idempotent, and carry the leader's term: an order of a lower term than one that was seen raises
    ``StaleTerm`` and changes nothing. A launcher that cannot be reached raises ``DependencyDown``.

    Replicas outlive whoever launched them. One that ends by itself is started again by its launcher, after a delay that
    grows.
    """

    async def list(self) -> Sequence[Launched]:
        """Everything that was launched here and has not been stopped, by whichever leader; never a part of it."""

    async def ensure(self, name: ReplicaName, spec: ReplicaSpec, *, term: int) -> None:
        """The replica shall run: starts it unless it does. One that runs with another spec is left as it is: whoever
        wants it changed stops it first."""

    async def stop(self, name: ReplicaName, incarnation: str, *, term: int) -> None:
        """This run of the replica shall drain and end, and is not started again. Another run of the name is left
        alone; a run that is gone is no error. Returns at once: ``list`` says when it is gone."""

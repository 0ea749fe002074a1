"""Deliveries that are parked: neither acked nor given back, and outside the slot count. Claims nothing itself.

A delivery is parked while another worker owns its job, or while a service that must be asked about it is away.
"""

from collections.abc import Collection

from axon.ports.queue import Delivery


class Parked:
    """The parked deliveries of one worker, by delivery tag."""

    def __init__(self) -> None:
        self._deliveries: dict[int, tuple[Delivery, str]] = {}

    def __len__(self) -> int:
        return len(self._deliveries)

    def add(self, delivery: Delivery, owner: str = "") -> None:
        """Parks a delivery; ``owner`` is the incarnation whose lease it waits for, empty where it waits for none."""
        self._deliveries[delivery.tag] = delivery, owner

    def drop(self, delivery: Delivery) -> None:
        """Removes one delivery, which may not be here."""
        self._deliveries.pop(delivery.tag, None)

    @property
    def owners(self) -> set[str]:
        """The incarnations whose leases are waited for."""
        return {owner for _, owner in self._deliveries.values() if owner}

    def take(self) -> list[Delivery]:
        """Removes and returns every delivery."""
        parked, self._deliveries = self._deliveries, {}
        return [delivery for delivery, _ in parked.values()]

    def take_of(self, owners: Collection[str]) -> list[Delivery]:
        """Removes and returns the deliveries that wait for a lease of these owners."""
        taken = [delivery for delivery, owner in self._deliveries.values() if owner in owners]
        for delivery in taken:
            self.drop(delivery)
        return taken

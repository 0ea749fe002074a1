"""Embedded pins: the versions that this process's sessions are pinned to. Knows no deployment."""

from axon.adapters.live.memory.expiring import Expiring
from axon.domain.session.pin import Pin
from axon.runtime.clock import Clock


class MemoryPins:
    """Above ``max_pins`` those that expire soonest are evicted; the store knows them still."""

    def __init__(self, clock: Clock, *, max_pins: int = 1_000_000) -> None:
        self._pins: Expiring[str, Pin] = Expiring(clock, max_entries=max_pins)

    async def get(self, key: str) -> Pin | None:
        return self._pins.get(key)

    async def pin(self, key: str, wanted: Pin, *, ttl_s: float) -> Pin:
        self._pins.sweep()
        if (held := self._pins.get(key)) is not None:
            return held
        self._pins.put(key, wanted, ttl_s)
        return wanted

    async def move(self, key: str, old: Pin, new: Pin, *, ttl_s: float) -> Pin | None:
        held = self._pins.get(key)
        if held is None or held != old:
            return held
        self._pins.put(key, new, ttl_s)
        return new

    async def confirm(self, key: str, pin: Pin, *, ttl_s: float) -> Pin | None:
        held = self._pins.get(key)
        if held is None or held != pin:
            return held
        self._pins.put(key, pin.told, ttl_s)
        return pin.told

    async def drop(self, key: str) -> None:
        self._pins.pop(key)

    def lose_everything(self) -> None:
        """Simulates a restart of the service, for tests."""
        self._pins.clear()

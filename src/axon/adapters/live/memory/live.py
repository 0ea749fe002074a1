"""All live ports in this process's memory. Nothing survives the process or is visible to another one."""

from dataclasses import dataclass

from axon.adapters.live.memory.accounts import MemoryAccounts
from axon.adapters.live.memory.cache import MemoryCache
from axon.adapters.live.memory.crowds import MemoryCrowds
from axon.adapters.live.memory.leases import MemoryLeases
from axon.adapters.live.memory.log import MemoryTokenLog
from axon.adapters.live.memory.pins import MemoryPins
from axon.adapters.live.memory.presences import MemoryPresences
from axon.adapters.live.memory.shares import MemoryShares
from axon.adapters.live.memory.wakeups import MemoryWakeups
from axon.ports.live import Live
from axon.runtime.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLive(Live):
    """The embedded ports with their concrete types, so that a test can make them lose their memory."""

    log: MemoryTokenLog
    leases: MemoryLeases
    accounts: MemoryAccounts
    crowds: MemoryCrowds
    shares: MemoryShares
    cache: MemoryCache
    pins: MemoryPins
    presences: MemoryPresences
    wakeups: MemoryWakeups

    def lose_everything(self) -> None:
        """Simulates a flush or restart of the service; listeners stay, as their clients reconnect."""
        counted = (self.leases, self.accounts, self.crowds, self.shares)
        for twin in (self.log, *counted, self.cache, self.pins, self.presences):
            twin.lose_everything()


def open_memory_live(
    clock: Clock, *, retention_s: float, max_streams: int = 100_000, carries: bool = False
) -> MemoryLive:
    """Embedded ports that share one clock; nothing needs closing. With ``carries``, notifications of the log have the
    chunk in them, for listeners in other processes."""
    wakeups = MemoryWakeups()
    return MemoryLive(
        log=MemoryTokenLog(clock, wakeups, retention_s=retention_s, max_streams=max_streams, carries=carries),
        leases=MemoryLeases(clock),
        accounts=MemoryAccounts(clock),
        crowds=MemoryCrowds(clock),
        shares=MemoryShares(),
        cache=MemoryCache(clock),
        pins=MemoryPins(clock),
        presences=MemoryPresences(clock),
        wakeups=wakeups,
    )

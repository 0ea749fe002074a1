"""The eight live ports in this process's memory, as one. Nothing survives the process or is seen from another one."""

from dataclasses import dataclass

from axon.adapters.live.memory_accounts import MemoryAccounts
from axon.adapters.live.memory_cache import MemoryCache
from axon.adapters.live.memory_crowds import MemoryCrowds
from axon.adapters.live.memory_leases import MemoryLeases
from axon.adapters.live.memory_log import MemoryTokenLog
from axon.adapters.live.memory_presences import MemoryPresences
from axon.adapters.live.memory_shares import MemoryShares
from axon.adapters.live.memory_wakeups import MemoryWakeups
from axon.ports.live import Live
from axon.runtime.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLive(Live):
    """The twins by their own names, so that a test can lose what a service would."""

    log: MemoryTokenLog
    leases: MemoryLeases
    accounts: MemoryAccounts
    crowds: MemoryCrowds
    shares: MemoryShares
    cache: MemoryCache
    presences: MemoryPresences
    wakeups: MemoryWakeups

    def lose_everything(self) -> None:
        """What a flush or restart of the service does; listeners stay, as their clients reconnect."""
        for twin in (self.log, self.leases, self.accounts, self.crowds, self.shares, self.cache, self.presences):
            twin.lose_everything()


def open_memory_live(clock: Clock, *, retention_s: float, max_streams: int = 100_000) -> MemoryLive:
    """Twins that share one clock; there is nothing to close."""
    wakeups = MemoryWakeups()
    return MemoryLive(
        log=MemoryTokenLog(clock, wakeups, retention_s=retention_s, max_streams=max_streams),
        leases=MemoryLeases(clock),
        accounts=MemoryAccounts(clock),
        crowds=MemoryCrowds(clock),
        shares=MemoryShares(),
        cache=MemoryCache(clock),
        presences=MemoryPresences(clock),
        wakeups=wakeups,
    )

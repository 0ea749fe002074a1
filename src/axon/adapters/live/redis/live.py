"""All live ports on one Redis server or cluster. Knows no settings: its owner passes the URL."""

from axon.adapters.live.redis.accounts import RedisAccounts
from axon.adapters.live.redis.cache import RedisCache
from axon.adapters.live.redis.client import RedisClient
from axon.adapters.live.redis.crowds import RedisCrowds
from axon.adapters.live.redis.leases import RedisLeases
from axon.adapters.live.redis.log import RedisTokenLog
from axon.adapters.live.redis.pins import RedisPins
from axon.adapters.live.redis.presences import RedisPresences
from axon.adapters.live.redis.shares import RedisShares
from axon.adapters.live.redis.start_errors import explained
from axon.adapters.live.redis.wakeups import RedisWakeups
from axon.adapters.service_address import ServiceAddress, address_of
from axon.ports.live import Live


class RedisLive(Live):
    """Every call is bounded by ``deadline_s`` and fails as ``DependencyDown``; every key begins with ``prefix``."""

    __slots__ = ("_address", "_client", "_wakeups")
    _address: ServiceAddress
    _client: RedisClient
    _wakeups: RedisWakeups

    def __init__(
        self, url: str | ServiceAddress, *, retention_s: float, prefix: str = "axon", deadline_s: float = 2.0
    ) -> None:
        address = address_of(url)
        client = RedisClient(address, prefix=prefix, deadline_s=deadline_s)
        wakeups = RedisWakeups(client)
        super().__init__(
            log=RedisTokenLog(client, retention_s=retention_s),
            leases=RedisLeases(client),
            accounts=RedisAccounts(client),
            crowds=RedisCrowds(client),
            shares=RedisShares(client),
            cache=RedisCache(client),
            pins=RedisPins(client),
            presences=RedisPresences(client),
            wakeups=wakeups,
        )
        # The base class is a frozen dataclass, so this class is frozen too.
        object.__setattr__(self, "_client", client)
        object.__setattr__(self, "_address", address)
        object.__setattr__(self, "_wakeups", wakeups)

    async def open(self) -> None:
        """Connects; raises ``DependencyDown`` with address and cause, and leaves nothing open then."""
        with explained(self._address):
            await self._client.open()
        self._wakeups.open()

    async def aclose(self) -> None:
        await self._wakeups.aclose()
        await self._client.aclose()

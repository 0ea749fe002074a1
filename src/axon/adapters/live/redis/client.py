"""A client of one Redis server or cluster: commands and scripts with a deadline. Knows no port.

The driver's retries are off. A dead connection is replaced by the next call; a script that the server has lost, as
after a restart, is sent again in full.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, ReadOnlyError, RedisClusterException

from axon.adapters.live.redis.credentials import FileCredentials, without_credentials
from axon.adapters.live.redis.driver_errors import DRIVER_ERRORS, may_have_moved, translate
from axon.adapters.live.redis.packing import packing
from axon.adapters.live.redis.scripts import Script
from axon.adapters.live.redis.tls import share_in_cluster, sharing
from axon.adapters.service_address import ServiceAddress, address_of
from axon.errors import DependencyDown, Misconfigured

Server = Redis | RedisCluster
Argument = str | bytes | int | float
Run = tuple[Sequence[str], Sequence[Argument]]
"""One run of a script: its keys, in a cluster all of one slot, and its arguments."""

_CLUSTER = "+cluster://"


def milliseconds(seconds: float) -> int:
    """Seconds as whole milliseconds, at least 1, as Redis takes a ttl."""
    return max(1, round(seconds * 1000))


class RedisClient:
    """``redis://`` and ``rediss://`` name one server, ``redis+cluster://`` and ``rediss+cluster://`` a cluster's node.

    At most ``max_calls`` calls are in flight; others wait, under the same deadline.
    """

    def __init__(self, url: str | ServiceAddress, *, prefix: str, deadline_s: float, max_calls: int = 64) -> None:
        self._address, self._prefix = address_of(url), prefix
        self.deadline_s = deadline_s
        self._slots = asyncio.Semaphore(max_calls)
        self._max_calls = max_calls
        self._server: Server | None = None
        self._is_layout_old = False

    @property
    def has_slots(self) -> bool:
        """Whether the server is a cluster, where a script's keys must be of one slot."""
        return _CLUSTER in self._address.url

    def another(self, *, deadline_s: float) -> "RedisClient":
        """A client of the same server for another event loop, still to be opened."""
        return RedisClient(self._address, prefix=self._prefix, deadline_s=deadline_s, max_calls=2)

    async def open(self) -> None:
        """Connects; raises ``DependencyDown`` on failure."""
        self._server = self._make_server()
        try:
            async with self._edge() as server:
                await server.initialize()
                await server.execute_command("PING")
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            with suppress(*DRIVER_ERRORS):  # the server may be gone
                await server.aclose()

    def key(self, *parts: str) -> str:
        return ":".join((self._prefix, *parts))

    def channel(self, name: str) -> str:
        """Name of a Pub/Sub channel; channels are global to the server, so they carry the prefix too."""
        return self.key(name)

    async def call(self, *command: Argument) -> Any:
        """Runs one command."""
        async with self._edge() as server:
            return await server.execute_command(*command)

    async def run(self, script: Script, keys: Sequence[str], *arguments: Argument) -> Any:
        """Runs one script."""
        async with self._edge() as server:
            try:
                return await server.execute_command("EVALSHA", script.sha, len(keys), *keys, *arguments)
            except NoScriptError:
                return await server.execute_command("EVAL", script.source, len(keys), *keys, *arguments)

    async def run_all(self, script: Script, runs: Sequence[Run]) -> list[Any]:
        """Runs one script many times in one round trip (one per node in a cluster)."""
        async with self._edge() as server:
            replies = await _pipe(server, "EVALSHA", script.sha, runs)
            forgotten = [index for index, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
            if forgotten:
                again = await _pipe(server, "EVAL", script.source, [runs[index] for index in forgotten])
                for index, reply in zip(forgotten, again, strict=True):
                    replies[index] = reply
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
            return replies

    async def connect(self) -> AbstractConnection:
        """A separate connection for the caller, to any node."""
        server = self._opened()
        node = server.connection_pool if isinstance(server, Redis) else server.get_random_node()
        # The driver's timeouts can swallow a cancellation, and the caller has its own.
        options = {**node.connection_kwargs, "socket_timeout": None}
        connection: AbstractConnection = node.connection_class(**options)
        try:
            async with asyncio.timeout(self.deadline_s):
                await connection.connect_check_health(check_health=False)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        return connection

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """A deadline for the calls inside; driver errors are translated."""
        try:
            async with asyncio.timeout(self.deadline_s):
                yield
        except DRIVER_ERRORS as error:
            failure = translate(error)
            raise failure from failure.__cause__

    @asynccontextmanager
    async def _edge(self) -> AsyncIterator[Any]:
        """Gives the server for one call: limits concurrency, refreshes a stale cluster layout, sets the deadline."""
        server = self._opened()
        try:
            async with asyncio.timeout(self.deadline_s), self._slots:
                await self._learn_layout(server)
                yield server
        except DRIVER_ERRORS as error:
            await self._doubt(server, error)
            failure = translate(error)
            raise failure from failure.__cause__

    async def _learn_layout(self, server: Server) -> None:
        """Reads the cluster's slot map again if it may be stale; the driver does so for single commands only."""
        if self._is_layout_old and isinstance(server, RedisCluster):
            for node in server.get_nodes():
                await node.disconnect_free_connections()
            await server.nodes_manager.initialize()
            self._is_layout_old = False

    async def _doubt(self, server: Server, error: Exception) -> None:
        """Learns from a failure: marks the cluster's slot map stale, or drops connections to a demoted primary."""
        if isinstance(server, RedisCluster):
            self._is_layout_old = self._is_layout_old or may_have_moved(error)
        elif isinstance(error, ReadOnlyError):
            # The server was demoted since we connected: its name may resolve to the new primary.
            with suppress(*DRIVER_ERRORS):
                await server.connection_pool.disconnect(inuse_connections=False)

    def _opened(self) -> Server:
        if self._server is None:
            raise DependencyDown("The live service is not open.")
        return self._server

    def _make_server(self) -> Server:
        options: dict[str, Any] = {
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            "health_check_interval": 0,
            "socket_connect_timeout": self.deadline_s,
            "max_connections": 2 * self._max_calls,
            "driver_info": None,  # its command is newer than Redis 7.0
        }
        try:
            url = self._address.url
            if self._address.file is not None:
                url = without_credentials(url)
                options["credential_provider"] = FileCredentials(self._address)
            if url.startswith("rediss") and self._address.ca_file is not None:
                options["ssl_ca_certs"] = str(self._address.ca_file)  # the URL's own comes first
            if _CLUSTER in url:
                # Half the deadline, so that there is time for another node after a silent one.
                options["socket_timeout"] = self.deadline_s / 2
                cluster = RedisCluster.from_url(url.replace(_CLUSTER, "://", 1), **options)
                share_in_cluster(cluster)
                return cluster
            # Our deadline is enough, and one timer per call is cheaper than one per reply.
            server = Redis.from_url(url, socket_timeout=None, retry_on_timeout=False, **options)
            server.connection_pool.connection_class = packing(sharing(server.connection_pool.connection_class))
            return server
        except (ValueError, RedisClusterException) as error:
            raise Misconfigured(f"The URL of the live service cannot be used: {_unquoted(error)}") from error


def _unquoted(error: Exception) -> str:
    """What is wrong with a URL. The driver quotes the port, and Python the host: either may be a part of a password."""
    text = str(error)
    if text.startswith("Port"):
        return "its port is no number from 0 to 65535"
    return text if text.startswith(("Redis", "Invalid value for", "Invalid IPv6 URL")) else "it cannot be read"


async def _pipe(server: Any, command: str, script: str | bytes, runs: Sequence[Run]) -> list[Any]:
    """The replies in order, failed ones as exceptions."""
    pipe = server.pipeline(transaction=False)
    for keys, arguments in runs:
        pipe.execute_command(command, script, len(keys), *keys, *arguments)
    replies: list[Any] = await pipe.execute(raise_on_error=False)
    return replies

"""The live ports on a real Redis, as the suites want them: with time that passes and memory that can be lost."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from axon.adapters.live.redis.live import RedisLive
from axon.adapters.service_address import ServiceAddress
from axon.domain.log.chunk import Chunk
from axon.domain.wire import decode
from tests.services.certificates import shared_authority
from tests.services.redis import RedisServer, shared_server
from tests.services.require import require


class RedisLives:
    """One prefix of a server that others use as well."""

    def __init__(self, server: RedisServer, *, retention_s: float, tls: bool = False) -> None:
        self._prefix = f"test-{secrets.token_hex(4)}"
        secure = ServiceAddress(url=server.tls_url, ca_file=shared_authority().file) if tls else None
        self.live = RedisLive(secure or server.url, retention_s=retention_s, prefix=self._prefix, deadline_s=20.0)
        self._admin: Any = server.admin()

    async def pass_time(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def grow_old(self, seconds: float) -> None:
        for key in self._keys():
            if (left_ms := self._admin.pttl(key)) > 0:
                self._admin.pexpire(key, max(0, left_ms - round(1000 * seconds)))

    async def lose_everything(self) -> None:
        for key in self._keys():
            self._admin.delete(key)

    async def lose_tail(self, job_id: str, keep: int) -> None:
        job, log = (f"{self._prefix}:{{{job_id}}}:{name}" for name in ("job", "log"))
        for entry_id, _ in self._admin.xrange(log, min=f"({keep}-0"):
            self._admin.xdel(log, entry_id)
        kept = self._admin.xrevrange(log, count=1)
        if kept:
            self._admin.execute_command("XSETID", log, kept[0][0])
        else:
            self._admin.delete(log)
        ended = bool(kept) and bool(decode(Chunk, kept[0][1][b"chunk"]).terminal)
        self._admin.hset(job, "last", int(kept[0][0].split(b"-")[0]) if kept else 0)
        if not ended:
            self._admin.hdel(job, "ended")
            for key in (job, log):
                self._admin.expire(key, 3600)

    def check(self) -> None:
        """Whatever is left will go by itself."""
        for key in self._keys():
            assert self._admin.pttl(key) != -1, f"{key!r} stays for ever"

    def close(self) -> None:
        for key in self._keys():
            self._admin.delete(key)
        self._admin.close()

    def _keys(self) -> list[bytes]:
        return list(self._admin.scan_iter(match=f"{self._prefix}:*", count=1000))


@asynccontextmanager
async def redis_lives(
    folder: Path, *, retention_s: float, cluster: bool = False, tls: bool = False
) -> AsyncIterator[RedisLives]:
    require("redis-server")
    backend = RedisLives(shared_server(cluster=cluster, tls=tls), retention_s=retention_s, tls=tls)
    try:
        await backend.live.open()
        try:
            yield backend
        finally:
            await backend.live.aclose()
        backend.check()
    finally:
        backend.close()

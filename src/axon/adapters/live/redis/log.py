"""The token log on Redis: a stream and a hash a job, written by scripts alone. Knows no policy of retries.

An entry's id is ``<seq of its last token>-0``; marks without tokens follow it as ``-1``, ``-2`` …, so that reading
from ``<seq>-0`` on is resuming after that token.
"""

from collections.abc import Sequence
from typing import Any

from axon.adapters.live.redis.client import Argument, RedisClient, Run, milliseconds
from axon.adapters.live.redis.scripts import load
from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import Claimed, LogView
from axon.domain.wire import decode, encode
from axon.ports.live import STOPS, Appended, AppendStatus, stream_channel

_OPEN, _CLAIM, _RELEASE = load("open"), load("claim"), load("release")
_APPEND, _READ, _FLAG, _FORGET = load("append"), load("read"), load("flag"), load("forget")
_CONFIRM = load("confirm")
_STATUS = {status.value.encode(): status for status in AppendStatus}
_UNFINISHED_MS = milliseconds(24 * 3600)
"""Seconds that an unused, unended stream is kept: long after its job has expired."""

_JOBS_PER_RUN = 32
"""Jobs that one run of the script appends for at most: meanwhile the server does nothing else."""
_NO_CHUNKS = 2**52
"""A seq beyond every stream's end, for a look at a stream without its chunks."""
_ASKED = 2
"""Value of the field ``cancel`` of a job whose client asked for its cancellation; any other cancelled job has 1."""
_REFUSED = 4
"""Value of that field where the client was told that the job was not accepted."""
_ABSENT = 3
"""What ``read.lua`` says of a job whose reader is away and that nobody cancelled."""


class RedisTokenLog:
    """Ended streams are kept for ``retention_s``."""

    def __init__(self, client: RedisClient, *, retention_s: float) -> None:
        self._client = client
        self._retention_ms = milliseconds(retention_s)

    async def open(self, job_id: str, body: bytes, *, reader_ttl_s: float | None) -> bool:
        made = await self._client.run(_OPEN, self._keys(job_id), body, _ttl(reader_ttl_s), _UNFINISHED_MS)
        return bool(made)

    async def claim(self, job_id: str, owner: str, *, over: int) -> Claimed | None:
        claimed = await self._client.run(_CLAIM, self._keys(job_id), owner, over, _UNFINISHED_MS)
        return Claimed(*claimed) if claimed else None

    async def release(self, job_id: str, epoch: int, *, crashes: int) -> None:
        await self._client.run(_RELEASE, self._keys(job_id)[:1], epoch, self._channel(job_id), crashes)

    async def append(self, batch: Sequence[tuple[str, Chunk]]) -> Sequence[Appended]:
        if not batch:
            return []
        num_each = 1 if self._client.has_slots else _JOBS_PER_RUN
        runs = [self._appends(batch[start : start + num_each]) for start in range(0, len(batch), num_each)]
        answers = await self._client.run_all(_APPEND, runs)
        return [Appended(_STATUS[status], last) for each in answers for status, last in each]

    async def read(self, job_id: str, *, after: int) -> LogView | None:
        return _view(await self._client.run(_READ, self._keys(job_id), after), after)

    async def views(self, job_ids: Sequence[str]) -> Sequence[LogView | None]:
        if not job_ids:
            return []
        runs = [(self._keys(job_id), (_NO_CHUNKS,)) for job_id in job_ids]
        return [_view(found, _NO_CHUNKS) for found in await self._client.run_all(_READ, runs)]

    async def flag(
        self,
        job_id: str,
        *,
        cancel: bool = False,
        asked: bool = False,
        refused: bool = False,
        reader_ttl_s: float | None = None,
    ) -> bool:
        stops = self._client.channel(STOPS)
        stop = (_REFUSED if refused else _ASKED if asked else 1) if cancel else 0
        arguments = (stop, _ttl(reader_ttl_s), self._channel(job_id), _UNFINISHED_MS, stops, job_id)
        return bool(await self._client.run(_FLAG, self._keys(job_id), *arguments))

    async def confirm(self, job_id: str) -> bool:
        return bool(await self._client.run(_CONFIRM, self._keys(job_id)[:1]))

    async def forget(self, job_id: str, *, in_s: float) -> bool:
        return bool(await self._client.run(_FORGET, self._keys(job_id), milliseconds(in_s) if in_s > 0 else 0))

    def _appends(self, batch: Sequence[tuple[str, Chunk]]) -> Run:
        """One run of the script ``append`` for all of these jobs."""
        keys: list[str] = []
        arguments: list[Argument] = [_UNFINISHED_MS, self._retention_ms]
        for job_id, chunk in batch:
            payload = encode(chunk) if chunk.tokens or chunk.ends or chunk.terminal else b""
            keys += self._keys(job_id)
            arguments += (chunk.epoch, chunk.first, len(chunk.tokens), int(bool(chunk.terminal)))
            arguments += (payload, self._channel(job_id))
        return keys, arguments

    def _keys(self, job_id: str) -> tuple[str, str]:
        """Both keys share one cluster slot by their hash tag."""
        return self._client.key(f"{{{job_id}}}", "job"), self._client.key(f"{{{job_id}}}", "log")

    def _channel(self, job_id: str) -> str:
        return self._client.channel(stream_channel(job_id))


def _view(found: Any, after: int) -> LogView | None:
    """The answer of the script ``read`` for the stream past seq ``after``."""
    if found is None:
        return None
    body, epoch, owner, last, ended, cancelled, entries = found
    chunks = (decode(Chunk, entry).after(after) for entry in entries)
    return LogView(
        body=body,
        epoch=epoch,
        owner=owner.decode(),
        last=last,
        ended=bool(ended),
        cancelled=bool(cancelled),
        asked=cancelled == _ASKED,
        refused=cancelled == _REFUSED,
        absent=cancelled == _ABSENT,
        chunks=tuple(chunk for chunk in chunks if chunk.tokens or chunk.ends or chunk.terminal),
    )


def _ttl(seconds: float | None) -> int | str:
    return "" if seconds is None else milliseconds(seconds)

"""Embedded token log: a stream per job in this process's memory, lost with it; the store has the ended turns.

Ended streams are kept in the order they ended, so forgetting the old ones looks at those alone.
"""

import heapq
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from axon.adapters.live.memory.wakeups import MemoryWakeups
from axon.domain.log import append
from axon.domain.log.chunk import Chunk
from axon.domain.log.ownership import Claimed, LogView, next_epoch
from axon.domain.wire import encode
from axon.errors import DependencyDown
from axon.ports.live import STOPS, Appended, AppendStatus, stream_channel
from axon.runtime.clock import Clock

_TOKEN_BYTES = 200
"""Approximate bytes of one token in memory."""


@dataclass(slots=True)
class _Stream:
    """One job's stream. ``read_until`` is None for a job that needs no reader."""

    body: bytes
    read_until: float | None
    epoch: int = 0
    owner: str = ""
    crashes: int = 0
    last: int = 0
    ended: bool = False
    cancel: bool = False
    asked: bool = False
    """Whether the job's client asked for its cancellation."""
    refused: bool = False
    """Whether the job's client was told that it was not accepted."""
    confirmed: bool = False
    """Whether a client was told that it is accepted."""
    chunks: list[Chunk] = field(default_factory=list)

    @property
    def num_bytes(self) -> int:
        return len(self.body) + _TOKEN_BYTES * (self.last + len(self.chunks))

    def cancelled(self, now: float) -> bool:
        return self.cancel or (self.absent(now) and not self.ended)

    def absent(self, now: float) -> bool:
        return self.read_until is not None and self.read_until <= now

    def judge(self, chunk: Chunk, now: float) -> AppendStatus:
        """Whether the chunk may be written."""
        return append.judge(
            chunk,
            epoch=self.epoch,
            last=self.last,
            ended=self.ended,
            cancelled=self.cancel,
            absent=self.absent(now),
        )

    def write(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)
        self.last += len(chunk.tokens)
        self.ended = bool(chunk.terminal)

    def past(self, after: int) -> tuple[Chunk, ...]:
        """Chunks with tokens past ``after``, and chunks without tokens right after it, which a reader there may have
        missed."""
        start = len(self.chunks)
        while start and self.chunks[start - 1].last >= after:  # most readers keep up: the newest chunk is all they lack
            start -= 1
        found = (
            chunk.after(after) for chunk in self.chunks[start:] if chunk.last > after or chunk.ends or chunk.terminal
        )
        return tuple(chunk for chunk in found if chunk.tokens or chunk.ends or chunk.terminal)

    def cut(self, keep: int) -> None:
        """Drops every token past ``keep``, and the chunks without tokens after the last one kept."""
        kept = [chunk for chunk in self.chunks if chunk.first <= keep]
        if kept and kept[-1].last > keep:
            tokens = kept[-1].tokens[: keep + 1 - kept[-1].first]
            kept[-1] = replace(kept[-1], tokens=tokens, ends=(), terminal="", code="", message="")
        self.chunks = kept
        self.last = kept[-1].last if kept else 0
        self.ended = bool(kept and kept[-1].terminal)


class MemoryTokenLog:
    """All streams. Above the bounds, ended ones are evicted, the longest ended first."""

    def __init__(
        self,
        clock: Clock,
        wakeups: MemoryWakeups,
        *,
        retention_s: float,
        max_streams: int = 100_000,
        max_kept_bytes: int = 256 * 2**20,
        carries: bool = False,
    ) -> None:
        """With ``carries``, a notification has the chunk in it, for listeners in other processes; here, reading the
        log costs less than decoding it."""
        self._clock = clock
        self._carries = carries
        self._wakeups = wakeups
        self._retention_s = retention_s
        self._max_streams = max_streams
        self._max_kept_bytes = max_kept_bytes
        self._streams: dict[str, _Stream] = {}
        self._ended: OrderedDict[str, float] = OrderedDict()
        self._sooner: list[tuple[float, str]] = []
        self._kept_bytes = 0

    async def open(self, job_id: str, body: bytes, *, reader_ttl_s: float | None) -> bool:
        if self._find(job_id) is not None:
            return False
        if len(self._streams) >= self._max_streams:
            self._make_room()
        read_until = None if reader_ttl_s is None else self._clock.monotonic() + reader_ttl_s
        self._streams[job_id] = _Stream(body, read_until)
        return True

    async def claim(self, job_id: str, owner: str, *, over: int) -> Claimed | None:
        stream = self._find(job_id)
        if stream is None or stream.ended or stream.epoch != over:
            return None
        stream.epoch = next_epoch(stream.epoch, self._clock.now())
        stream.owner = owner
        return Claimed(stream.epoch, stream.crashes)

    async def release(self, job_id: str, epoch: int, *, crashes: int) -> None:
        stream = self._find(job_id)
        if stream is not None and not stream.ended and stream.epoch == epoch:
            stream.owner, stream.crashes = "", crashes
            self._wakeups.wake(stream_channel(job_id))

    async def append(self, batch: Sequence[tuple[str, Chunk]]) -> Sequence[Appended]:
        return [self._append(job_id, chunk) for job_id, chunk in batch]

    async def read(self, job_id: str, *, after: int) -> LogView | None:
        return self._view(job_id, after)

    async def views(self, job_ids: Sequence[str]) -> Sequence[LogView | None]:
        return [self._view(job_id, None) for job_id in job_ids]

    async def flag(
        self,
        job_id: str,
        *,
        cancel: bool = False,
        asked: bool = False,
        refused: bool = False,
        reader_ttl_s: float | None = None,
    ) -> bool:
        stream = self._find(job_id)
        if stream is None or stream.ended or (refused and stream.confirmed):
            return False
        if reader_ttl_s is not None and stream.read_until is not None:
            stream.read_until = max(stream.read_until, self._clock.monotonic() + reader_ttl_s)
        if cancel:
            stream.cancel = True
            stream.asked = stream.asked or asked
            stream.refused = stream.refused or refused
            self._wakeups.wake(stream_channel(job_id))
            self._wakeups.wake(STOPS, job_id.encode())
        return True

    async def confirm(self, job_id: str) -> bool:
        stream = self._find(job_id)
        if stream is None:
            return True
        stream.confirmed = not stream.refused
        return stream.confirmed

    async def forget(self, job_id: str, *, in_s: float) -> bool:
        stream = self._find(job_id)
        if stream is None or not stream.ended:
            return False
        heapq.heappush(self._sooner, (self._clock.monotonic() + in_s, job_id))
        self._find(job_id)
        return True

    def lose_everything(self) -> None:
        """Simulates a flush of the service, for tests."""
        self._streams.clear()
        self._ended.clear()
        self._sooner.clear()
        self._kept_bytes = 0

    def lose_tail(self, job_id: str, keep: int) -> None:
        """Simulates a failover to a lagging replica for one stream, for tests."""
        stream = self._streams[job_id]
        if self._ended.pop(job_id, None) is not None:
            self._kept_bytes -= stream.num_bytes
        stream.cut(keep)
        if stream.ended:
            self._retain(job_id, stream)

    def _view(self, job_id: str, after: int | None) -> LogView | None:
        """The job with its chunks past seq ``after``; without chunks for None."""
        stream = self._find(job_id)
        if stream is None:
            return None
        cancelled = stream.cancelled(self._clock.monotonic())
        return LogView(
            body=stream.body,
            epoch=stream.epoch,
            owner=stream.owner,
            last=stream.last,
            ended=stream.ended,
            cancelled=cancelled,
            asked=stream.asked and not stream.refused,
            refused=stream.refused,
            absent=cancelled and not stream.cancel,
            chunks=() if after is None else stream.past(after),
        )

    def _append(self, job_id: str, chunk: Chunk) -> Appended:
        stream = self._find(job_id)
        if stream is None:
            return Appended(AppendStatus.MISSING, 0)
        status = stream.judge(chunk, self._clock.monotonic())
        if status is AppendStatus.OK and (chunk.tokens or chunk.ends or chunk.terminal):
            stream.write(chunk)
            channel = stream_channel(job_id)
            carried = self._carries and self._wakeups.is_heard(channel)
            self._wakeups.wake(channel, encode(chunk) if carried else b"")
            if stream.ended:
                self._retain(job_id, stream)
        return Appended(status, stream.last)

    def _find(self, job_id: str) -> _Stream | None:
        now = self._clock.monotonic()
        while self._ended and next(iter(self._ended.values())) <= now:
            self._forget_oldest()
        while self._sooner and self._sooner[0][0] <= now:
            _, sooner = heapq.heappop(self._sooner)
            if self._ended.pop(sooner, None) is not None:
                self._kept_bytes -= self._streams.pop(sooner).num_bytes
        return self._streams.get(job_id)

    def _retain(self, job_id: str, stream: _Stream) -> None:
        self._ended[job_id] = self._clock.monotonic() + self._retention_s
        self._kept_bytes += stream.num_bytes
        while self._kept_bytes > self._max_kept_bytes and len(self._ended) > 1:
            self._forget_oldest()

    def _make_room(self) -> None:
        if not self._ended:
            raise DependencyDown("The token log is full of unfinished streams.", code="log_full")
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        job_id, _ = self._ended.popitem(last=False)
        self._kept_bytes -= self._streams.pop(job_id).num_bytes

"""Follows a stream from a reader's seq to its end. Knows no HTTP.

The token log is the source of truth. Wake-ups only make following quick: a lost one costs a second, never a token.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Protocol

from axon.domain.job import Job
from axon.domain.log.chunk import Chunk
from axon.domain.stream import Cursor, Reread
from axon.domain.turn import Turn
from axon.domain.wire import decode
from axon.errors import DependencyDown, Draining, KeyRevoked
from axon.gateway.http.errors import Gone
from axon.gateway.offers.wait import Wait
from axon.gateway.turn.notices import Notices
from axon.gateway.turn.reader import PollTimer, Reader
from axon.ports.live import Live, stream_channel
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock
from axon.sessions.lookup import Lookup

_MAX_OUTAGE_S = 30.0
"""A reader waits this long for a log that does not answer before its stream breaks off with ``DependencyDown``."""
_DELIVERED_S = 2.0
"""An answer that is not kept is erased this many seconds after its delivery, because its worker still writes down the
turn's end."""
_RETRY_S = 0.2
_MAX_HEARTBEAT_TRIES = 3
"""When a reader arrives, its first heartbeat is tried this often."""


class TurnObserver(Protocol):
    """Observes turns by what their readers are sent."""

    def followed(self, job_id: str) -> None:
        """A reader follows the turn here."""

    def saw(self, job_id: str, chunk: Chunk) -> None:
        """A reader is sent this chunk."""

    def left(self, job_id: str) -> None:
        """No reader follows the turn any more."""


class Follower:
    """Reads streams for clients, and sends heartbeats to the log meanwhile, which keep the streams' turns running."""

    def __init__(
        self,
        live: Live,
        turns: TurnStore,
        lookup: Lookup,
        clock: Clock,
        *,
        reader_grace_s: float,
        silence_s: float,
        observer: TurnObserver | None = None,
    ) -> None:
        """``observer`` is told of each turn's first token and end, for the comparison of versions."""
        self._live, self._turns, self._lookup, self._clock = live, turns, lookup, clock
        self._reader_grace_s = reader_grace_s
        self._silence_s = silence_s
        self._followed: dict[Reader, str] = {}
        """The job id of every reader that this process follows a stream for."""
        self._is_ending = False
        """Whether this process shuts down."""
        self._observer = observer

    async def end(self) -> None:
        """Ends every follow with ``Draining``, because this process shuts down; the streams themselves go on."""
        self._is_ending = True
        for job_id in set(self._followed.values()):
            with contextlib.suppress(DependencyDown):  # the reader sees it at its next poll
                await self._live.wakeups.notify(stream_channel(job_id))

    @property
    def num_streams(self) -> int:
        """Streams that this process follows for readers."""
        return len(self._followed)

    @property
    def readers(self) -> tuple[Reader, ...]:
        """The readers that this process follows a stream for."""
        return tuple(self._followed)

    @property
    def key_ids(self) -> frozenset[str]:
        """The ids of the keys of all readers that this process follows a stream for."""
        return frozenset(reader.key_id for reader in self._followed if reader.key_id)

    async def revoke(self, key_ids: Collection[str]) -> None:
        """Ends every follow of a reader with one of these keys, with ``KeyRevoked``."""
        for reader, job_id in list(self._followed.items()):
            if reader.key_id in key_ids and not reader.is_revoked:
                reader.is_revoked = True
                with contextlib.suppress(DependencyDown):  # the reader sees it at its next poll
                    await self._live.wakeups.notify(stream_channel(job_id))

    async def left(self, reader: Reader) -> str:
        """Cancels the turn of a reader that has left, if nobody will read it. Returns the cause, or an empty string."""
        if reader.job is None or not (cause := self._stop_cause(reader, reader.job)):
            return ""
        try:
            return cause if await self._live.log.flag(reader.job.id, cancel=True) else ""
        except DependencyDown:
            return ""  # the turn is cancelled later, when its last heartbeat expires

    async def delivered(self, job: Job) -> None:
        """Deletes the stream of a job whose answer is kept nowhere once it was delivered, unless the client has a key
        to ask for it again; then it goes a while after its end."""
        if job.forget and not job.idempotency_key:
            with contextlib.suppress(DependencyDown):  # then it goes a while after its end
                await self._live.log.forget(job.id, in_s=_DELIVERED_S)

    def _stop_cause(self, reader: Reader, job: Job) -> str:
        """Returns why a turn should be cancelled now that this reader has left; empty if it should go on."""
        if reader.is_revoked:
            cause = "" if job.retain else "key_revoked"
        else:
            cause = "left" if job.reader_grace_s == 0 else ""
        if not cause or self._is_ending or job.background:
            return ""
        return "" if job.id in self._followed.values() else cause  # last: it looks at every reader

    async def follow(
        self, job_id: str, *, after: int, reader: Reader | None = None, notices: Notices | None = None
    ) -> AsyncGenerator[Chunk | Wait | None, None]:
        """Yields the chunks past seq ``after`` up to the terminal one, and None after each ``silence_s`` of silence.

        With ``notices`` it also yields how the turn waits, when that has changed, until a worker has claimed it.
        """
        cursor, reader = Cursor(after), reader or Reader()
        grace_s = reader.ttl_s(self._reader_grace_s)
        timer = PollTimer(self._clock.monotonic(), reader.end)
        registered = self._registered(reader, job_id, cursor)
        async with self._live.wakeups.listen(stream_channel(job_id)) as listener, registered:
            payload = b""
            while True:
                if reader.is_revoked:
                    raise KeyRevoked()
                is_last = self._is_ending  # read before the log, so that every token up to now is still delivered
                for chunk in await self._fresh_unless_down(job_id, cursor, b"" if is_last else payload, timer):
                    timer.chunk_sent(self._clock.monotonic())
                    if self._observer is not None:
                        self._observer.saw(job_id, chunk)
                    if reader.saw is not None:
                        reader.saw(chunk)
                    yield chunk
                if cursor.ended:
                    return
                if is_last:
                    raise Draining("The server is shutting down; the stream goes on and can be picked up at another.")
                if notices is not None and not timer.is_claimed and (wait := notices.due(self._clock.monotonic())):
                    yield wait
                payload = await listener.next(self._wait_s(timer, grace_s)) or b""
                now = self._clock.monotonic()
                if now - timer.heartbeat_at > grace_s / 3:
                    timer.heartbeat_failed = not await self._heartbeat(job_id, grace_s)
                    timer.heartbeat_at = timer.heartbeat_at if timer.heartbeat_failed else now
                if now - timer.last_sent_at > self._silence_s:
                    timer.last_sent_at = now
                    yield None

    @asynccontextmanager
    async def _registered(self, reader: Reader, job_id: str, cursor: Cursor) -> AsyncIterator[None]:
        """Lists the reader among those that this process follows a stream for. The observer is told when the last one
        leaves a stream that goes on."""
        self._followed[reader] = job_id
        if self._observer is not None:
            self._observer.followed(job_id)
        try:
            yield
        finally:
            del self._followed[reader]
            # Last: it looks at every reader.
            if self._observer is not None and (cursor.ended or job_id not in self._followed.values()):
                self._observer.left(job_id)

    def _wait_s(self, timer: PollTimer, grace_s: float) -> float:
        """Returns the seconds to wait for a wake-up; few while a lost heartbeat has to be repeated."""
        longest_s = min(timer.reread_in_s(self._clock.monotonic()), self._silence_s, grace_s / 3)
        return min(longest_s, _RETRY_S) if timer.heartbeat_failed else longest_s

    async def arrive(self, job_id: str, reader: Reader | None = None) -> None:
        """Sends the heartbeat of a reader that has come, or come back; a failed one is tried again a few times."""
        grace_s = (reader or Reader()).ttl_s(self._reader_grace_s)
        for _ in range(_MAX_HEARTBEAT_TRIES):
            if await self._heartbeat(job_id, grace_s):
                return
            await asyncio.sleep(_RETRY_S)

    async def _heartbeat(self, job_id: str, grace_s: float) -> bool:
        """Tells the log that the stream has a reader for ``grace_s`` seconds; False if the log did not answer."""
        try:
            await self._live.log.flag(job_id, reader_ttl_s=grace_s)
        except DependencyDown:
            return False
        return True

    async def _fresh_unless_down(self, job_id: str, cursor: Cursor, payload: bytes, timer: PollTimer) -> list[Chunk]:
        """Returns the unread chunks, or none while the log does not answer: the stream is slow then, but not lost."""
        try:
            fresh = await self._fresh(job_id, cursor, payload, timer)
        except DependencyDown:
            now = self._clock.monotonic()
            timer.down_since = timer.down_since or now
            if now - timer.down_since > _MAX_OUTAGE_S:
                raise
            await asyncio.sleep(_RETRY_S)
            return []
        timer.down_since = None
        return fresh

    async def _fresh(self, job_id: str, cursor: Cursor, payload: bytes, timer: PollTimer) -> list[Chunk]:
        """Returns the unread chunks: the one in the wake-up's payload if it comes next, otherwise those of the log."""
        if payload:
            timer.is_claimed = True
            taken = cursor.take(decode(Chunk, payload))
            if not isinstance(taken, Reread):
                return [taken] if taken else []
        # All reads come before the cursor moves: an error after a move would lose the chunks that the cursor took.
        view = await self._live.log.read(job_id, after=cursor.seq)
        timer.is_claimed |= view is not None and view.epoch > 0
        if timer.end is not None and (view is None or not view.ended):
            return cursor.take_all(_chunks_of(timer.end))
        if view is None:
            return cursor.take_all(_chunks_of(await self._lookup.stored(job_id)))
        if cursor.must_compare(view.chunks):
            return await self._compared(job_id, cursor)
        if fresh := cursor.take_run(view.chunks):
            return fresh
        if view.ended:
            return await self._compared(job_id, cursor)  # the log ended before the reader's seq
        if timer.store_is_due(self._clock.monotonic(), is_beyond=view.last < cursor.seq):
            # A log that lost its tail never shows the end. An end that is still on its way to the store is found later.
            return cursor.take_all(_chunks_of(await self._turns.get(job_id)))
        return []

    async def _compared(self, job_id: str, cursor: Cursor) -> list[Chunk]:
        """Returns the unread chunks after comparing the log with every token that this reader was sent."""
        view = await self._live.log.read(job_id, after=cursor.start)
        if view is not None and view.ended and view.last < cursor.start:
            return cursor.take_all(await self._of_short_log(job_id, view.last))
        return [] if view is None else cursor.take_all(view.chunks)

    async def _of_short_log(self, job_id: str, last: int) -> tuple[Chunk, ...]:
        """Returns the end of a stream whose log ended at seq ``last``, before the reader's position.

        The reader has read more tokens, of an earlier attempt. If the store has that attempt's end, it is the turn's;
        otherwise the log's end is.
        """
        turn = await self._lookup.stored(job_id)
        if turn is not None and turn.state.terminal and not turn.job.purged:
            return (turn.chunk(),)
        view = await self._live.log.read(job_id, after=last)
        return () if view is None else view.chunks


def _chunks_of(turn: Turn | None) -> tuple[Chunk, ...]:
    """Returns the store's copy of a stream that the log has forgotten; nothing while the turn runs.

    Raises ``Gone`` if the turn's text was deleted at the end of its retention time.
    """
    if turn is None or not turn.state.terminal:
        return ()
    if turn.job.purged:
        raise Gone()
    return (turn.chunk(),)

"""Follows a stream from a reader's seq to its end: the log is the truth, wake-ups only make it quick. Knows no HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from axon.domain.chunk import Chunk
from axon.domain.job import Job
from axon.domain.stream import Cursor, Reread
from axon.domain.turn import Turn
from axon.domain.wire import decode
from axon.errors import DependencyDown, Draining, KeyRevoked
from axon.gateway.http.errors import Gone
from axon.ports.live import Live, stream_channel
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock
from axon.sessions.lookup import Lookup

_REREAD_S = 1.0
_LONGEST_REREAD_S = 5.0
_ASK_STORE_S = 3.0
_PATIENCE_S = 30.0
_RETRY_S = 0.2
_ARRIVALS = 3


@dataclass(slots=True, eq=False)
class Reader:
    """One who follows a stream: the turn that is waited for, and the key that was shown for it."""

    job: Job | None = None
    key_id: str = ""
    found: Turn | None = None
    """The turn as the request of a reader who came back has found it."""
    is_revoked: bool = False
    """The key, meanwhile."""

    @property
    def end(self) -> Turn | None:
        """The turn where it had ended already. That is told when the log does not have it: a log that lost its tail
        never says the end, and no reader need stay until silence tells so."""
        return self.found if self.found is not None and self.found.state.terminal else None

    def ttl_s(self, longest_s: float) -> float:
        """How long its word counts that it is there."""
        return (self.job.reader_ttl_s(longest_s) if self.job else None) or longest_s


@dataclass(slots=True)
class _Watch:
    """What one reader has to look out for, and when."""

    heard_at: float
    """When the stream said something; ``spoke_at`` is when its reader was told so, or that there is nothing."""
    end: Turn | None = None
    """The turn, where its end was known before the log was read."""
    spoke_at: float = field(init=False)
    touched_at: float = field(init=False)
    unheard: bool = False
    """The last word that there is a reader was lost."""
    down_since: float | None = None
    _silence_asked_s: float = 0.0
    _was_beyond: bool = False

    def __post_init__(self) -> None:
        self.spoke_at = self.touched_at = self.heard_at

    def heard(self, now: float) -> None:
        self.heard_at = self.spoke_at = now

    def reread_in_s(self, now: float) -> float:
        """After a second of silence, then ever more rarely: a lost connection wakes us, so hints are seldom missed."""
        return min(max(_REREAD_S, now - self.heard_at), _LONGEST_REREAD_S)

    def store_is_due(self, now: float, *, is_beyond: bool) -> bool:
        """Whether a stream that says nothing should be looked up in the store.

        At once when the reader's place is beyond what the log has: the log has lost its tail, and maybe the end with
        it. Else after some silence, ever more rarely while the silence lasts.
        """
        silence_s = now - self.heard_at
        if silence_s < self._silence_asked_s:
            self._silence_asked_s = 0.0
        newly_beyond = is_beyond and not self._was_beyond
        self._was_beyond = is_beyond
        due = newly_beyond or silence_s >= max(_ASK_STORE_S, 2 * self._silence_asked_s)
        if due:
            self._silence_asked_s = silence_s
        return due


class Follower:
    """Reads streams for clients, and says while it does that they have a reader."""

    def __init__(
        self,
        live: Live,
        turns: TurnStore,
        lookup: Lookup,
        clock: Clock,
        *,
        reader_grace_s: float,
        silence_s: float,
    ) -> None:
        self._live, self._turns, self._lookup, self._clock = live, turns, lookup, clock
        self._reader_grace_s = reader_grace_s
        self._silence_s = silence_s
        self._followed: dict[Reader, str] = {}
        """The job of every reader who is here."""
        self._over = False

    async def end(self) -> None:
        """Ends what is being followed, each with ``Draining``: this process is at its end, the streams are not."""
        self._over = True
        for job_id in set(self._followed.values()):
            with contextlib.suppress(DependencyDown):  # then it is noticed a little later
                await self._live.wakeups.notify(stream_channel(job_id))

    @property
    def key_ids(self) -> frozenset[str]:
        """Of all who are here."""
        return frozenset(reader.key_id for reader in self._followed if reader.key_id)

    async def revoke(self, key_ids: Collection[str]) -> None:
        """Ends what is being followed with these keys, each with ``KeyRevoked``."""
        for reader, job_id in list(self._followed.items()):
            if reader.key_id in key_ids and not reader.is_revoked:
                reader.is_revoked = True
                with contextlib.suppress(DependencyDown):  # then it is noticed a little later
                    await self._live.wakeups.notify(stream_channel(job_id))

    async def left(self, reader: Reader) -> str:
        """A reader who follows no more: a turn that nobody will read is stopped. Returns why, or nothing."""
        if reader.job is None or not (cause := self._stop_cause(reader, reader.job)):
            return ""
        try:
            return cause if await self._live.log.flag(reader.job.id, cancel=True) else ""
        except DependencyDown:
            return ""  # it is cancelled a little later, because nobody says that it has a reader

    def _stop_cause(self, reader: Reader, job: Job) -> str:
        if self._over or job.background or job.id in self._followed.values():
            return ""
        if reader.is_revoked:
            return "" if job.retain else "key_revoked"
        return "left" if job.reader_grace_s == 0 else ""

    async def follow(
        self, job_id: str, *, after: int, reader: Reader | None = None
    ) -> AsyncGenerator[Chunk | None, None]:
        """Chunks past ``after`` until the terminal one; None when there was nothing to say for a while."""
        cursor, reader = Cursor(after), reader or Reader()
        grace_s = reader.ttl_s(self._reader_grace_s)
        watch = _Watch(self._clock.monotonic(), reader.end)
        async with self._live.wakeups.listen(stream_channel(job_id)) as listener, self._counted(reader, job_id):
            payload = b""
            while True:
                if reader.is_revoked:
                    raise KeyRevoked()
                is_last = self._over  # looked at before the log: what was said by now is told
                for chunk in await self._fresh_or_wait(job_id, cursor, b"" if is_last else payload, watch):
                    watch.heard(self._clock.monotonic())
                    yield chunk
                if cursor.ended:
                    return
                if is_last:
                    raise Draining("The server is shutting down; the stream goes on and can be picked up at another.")
                payload = await listener.next(self._patience_s(watch, grace_s)) or b""
                now = self._clock.monotonic()
                if now - watch.touched_at > grace_s / 3:
                    watch.unheard = not await self._touch(job_id, grace_s)
                    watch.touched_at = watch.touched_at if watch.unheard else now
                if now - watch.spoke_at > self._silence_s:
                    watch.spoke_at = now
                    yield None

    @asynccontextmanager
    async def _counted(self, reader: Reader, job_id: str) -> AsyncIterator[None]:
        self._followed[reader] = job_id
        try:
            yield
        finally:
            del self._followed[reader]

    def _patience_s(self, watch: "_Watch", grace_s: float) -> float:
        """How long to wait for a wake-up: not long while nobody has heard that there is a reader."""
        longest_s = min(watch.reread_in_s(self._clock.monotonic()), self._silence_s, grace_s / 3)
        return min(longest_s, _RETRY_S) if watch.unheard else longest_s

    async def arrive(self, job_id: str, reader: Reader | None = None) -> None:
        """A reader is here (again); said until it is heard, within reason."""
        grace_s = (reader or Reader()).ttl_s(self._reader_grace_s)
        for _ in range(_ARRIVALS):
            if await self._touch(job_id, grace_s):
                return
            await asyncio.sleep(_RETRY_S)

    async def _touch(self, job_id: str, grace_s: float) -> bool:
        """Says that the stream has a reader; False when that was not heard, and is to be said again."""
        try:
            await self._live.log.flag(job_id, reader_ttl_s=grace_s)
        except DependencyDown:
            return False
        return True

    async def _fresh_or_wait(self, job_id: str, cursor: Cursor, payload: bytes, watch: "_Watch") -> list[Chunk]:
        """Rides out a log that does not answer: the stream is not lost, only slow."""
        try:
            fresh = await self._fresh(job_id, cursor, payload, watch)
        except DependencyDown:
            now = self._clock.monotonic()
            watch.down_since = watch.down_since or now
            if now - watch.down_since > _PATIENCE_S:
                raise
            await asyncio.sleep(_RETRY_S)
            return []
        watch.down_since = None
        return fresh

    async def _fresh(self, job_id: str, cursor: Cursor, payload: bytes, watch: "_Watch") -> list[Chunk]:
        """What the reader has not seen yet: from the wake-up itself when it simply follows, else from the log."""
        if payload:
            taken = cursor.take(decode(Chunk, payload))
            if not isinstance(taken, Reread):
                return [taken] if taken else []
        # Whatever has to be read is read before anything is taken: what was taken must not be lost with an error.
        view = await self._live.log.read(job_id, after=cursor.seq)
        if watch.end is not None and (view is None or not view.ended):
            return cursor.take_all(_chunks_of(watch.end))
        if view is None:
            return cursor.take_all(_chunks_of(await self._lookup.stored(job_id)))
        if cursor.must_compare(view.chunks):
            return await self._compared(job_id, cursor)
        if fresh := cursor.take_run(view.chunks):
            return fresh
        if view.ended:
            return await self._compared(job_id, cursor)  # it ended before the seq the reader stands at
        if watch.store_is_due(self._clock.monotonic(), is_beyond=view.last < cursor.seq):
            # A log that lost its tail never says the end. What is on its way to the store is found when asked again.
            return cursor.take_all(_chunks_of(await self._turns.get(job_id)))
        return []

    async def _compared(self, job_id: str, cursor: Cursor) -> list[Chunk]:
        """The whole stream since the reader came, held against what it was given."""
        view = await self._live.log.read(job_id, after=cursor.start)
        if view is not None and view.ended and view.last < cursor.start:
            return cursor.take_all(await self._of_short_log(job_id, view.last))
        return [] if view is None else cursor.take_all(view.chunks)

    async def _of_short_log(self, job_id: str, last: int) -> tuple[Chunk, ...]:
        """The end of a stream whose log ended at ``last``, before its reader's place: the reader has read more of an
        earlier attempt. If that one's end was kept, it is the turn's; else the log's is."""
        turn = await self._lookup.stored(job_id)
        if turn is not None and turn.state.terminal and not turn.job.purged:
            return (turn.chunk(),)
        view = await self._live.log.read(job_id, after=last)
        return () if view is None else view.chunks


def _chunks_of(turn: Turn | None) -> tuple[Chunk, ...]:
    """What the store has of a stream that the log has forgotten; nothing while the turn goes on."""
    if turn is None or not turn.state.terminal:
        return ()
    if turn.job.purged:
        raise Gone()
    return (turn.chunk(),)

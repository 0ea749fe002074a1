"""Follows a stream from a reader's seq to its end: the log is the truth, wake-ups only make it quick. Knows no HTTP."""

from collections.abc import AsyncIterator

from axon.domain.chunk import Chunk
from axon.domain.stream import Cursor, Reread
from axon.domain.wire import decode
from axon.gateway.problems import Gone
from axon.ports.live import Listener, Live, stream_channel
from axon.ports.store import TurnStore
from axon.runtime.clock import Clock

_REREAD_S = 1.0


class Follower:
    """Reads streams for clients, and says while it does that they have a reader."""

    def __init__(self, live: Live, turns: TurnStore, clock: Clock, *, reader_grace_s: float, silence_s: float) -> None:
        self._live, self._turns, self._clock = live, turns, clock
        self._reader_grace_s = reader_grace_s
        self._silence_s = silence_s

    async def follow(self, job_id: str, *, after: int) -> AsyncIterator[Chunk | None]:
        """Chunks past ``after`` until the terminal one; None when there was nothing to say for a while."""
        cursor = Cursor(after)
        spoke_at = touched_at = self._clock.monotonic()
        async with self._live.wakeups.listen(stream_channel(job_id)) as listener:
            payload = b""
            while True:
                for chunk in await self._fresh(job_id, cursor, payload):
                    spoke_at = self._clock.monotonic()
                    yield chunk
                if cursor.ended:
                    return
                payload = await self._wait(listener)
                now = self._clock.monotonic()
                if now - touched_at > self._reader_grace_s / 3:
                    touched_at = now
                    await self._live.log.flag(job_id, reader_ttl_s=self._reader_grace_s)
                if now - spoke_at > self._silence_s:
                    spoke_at = now
                    yield None

    async def arrive(self, job_id: str) -> None:
        """A reader is here (again)."""
        await self._live.log.flag(job_id, reader_ttl_s=self._reader_grace_s)

    async def _fresh(self, job_id: str, cursor: Cursor, payload: bytes) -> list[Chunk]:
        if payload:
            taken = cursor.take(decode(Chunk, payload))
            if not isinstance(taken, Reread):
                return [taken] if taken else []
        view = await self._live.log.read(job_id, after=cursor.seq)
        if view is not None and view.ended and view.last < cursor.seq:
            view = await self._live.log.read(job_id, after=view.last)  # it ended before the seq the reader named
        chunks = view.chunks if view is not None else await self._stored(job_id)
        return [taken for chunk in chunks if isinstance(taken := cursor.take(chunk), Chunk)]

    async def _stored(self, job_id: str) -> tuple[Chunk, ...]:
        """What the store has of a stream that the log has forgotten; nothing while the turn goes on."""
        turn = await self._turns.get(job_id)
        if turn is None or not turn.state.terminal:
            return ()
        if turn.usage.output_tokens != len(turn.tokens):
            raise Gone()
        return (turn.chunk(),)

    async def _wait(self, listener: Listener) -> bytes:
        return await listener.next(min(_REREAD_S, self._silence_s)) or b""

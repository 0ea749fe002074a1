"""Histories of sessions: from the cache if possible, else from the store after a barrier. Never silently incomplete.

The cache holds, per session, the items before its newest turn and that turn's id; the newest turn itself is in the
token log. If either is missing, the history is read from the store after a barrier. A conversation has one turn at a
time: whoever opens one holds the conversation's lock until the turn is accepted.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import msgspec

from axon.domain.content.item import Item
from axon.domain.session import conversation as rules
from axon.domain.session.conversation import Entry, History
from axon.domain.turn import Turn, TurnState
from axon.errors import Busy, NotCompleted, NotFound
from axon.ports.conversation_store import ConversationStore
from axon.ports.live import Cache, Crowds
from axon.ports.store import SessionTurns
from axon.runtime.clock import Clock
from axon.sessions.config import SessionsConfig
from axon.sessions.lock import Lock
from axon.sessions.lookup import Lookup

MAX_STEPS = 10_000
"""Largest number of turns, and of items added by hand, that are read of one session."""
_MAX_CACHED_BYTES = 1 << 20


class Remembered(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A session's history in the cache."""

    tenant: str
    head: str
    """Id of the newest turn, whose text is not in ``items``; empty when there is none."""
    ordinal: int
    items: tuple[Item, ...]


class Histories:
    """Reads and caches histories."""

    def __init__(
        self,
        lookup: Lookup,
        cache: Cache,
        crowds: Crowds,
        turns: SessionTurns,
        conversations: ConversationStore,
        clock: Clock,
        config: SessionsConfig,
        on_gone_on: Callable[[float], None] = lambda idle_s: None,
    ) -> None:
        """``on_gone_on`` is told how many seconds a session had rested when a turn goes on from its last one."""
        self.lookup, self._on_gone_on = lookup, on_gone_on
        self._cache, self._crowds = cache, crowds
        self._turns, self._conversations = turns, conversations
        self._clock, self._config = clock, config

    async def of_turn(self, tenant: str, turn_id: str, *, wait_s: float) -> History:
        """The history up to and including a turn; waits up to ``wait_s`` seconds for one that still runs."""
        turn = await self.lookup.find(turn_id, asker=tenant)
        if turn is not None and not turn.state.terminal and turn.tenant == tenant:
            turn = await self.lookup.ended(turn_id, wait_s=wait_s)
        if turn is None or turn.tenant != tenant or not turn.job.session or turn.job.purged:
            raise NotFound(f"There is no turn '{turn_id}'.")
        if turn.state is not TurnState.COMPLETED:
            raise NotCompleted(f"The turn '{turn_id}' did not complete ({turn.state}); nothing can go on from it.")
        if turn.ended_at is not None:
            self._on_gone_on(max(0.0, self._clock.now() - turn.ended_at))
        return History(session=turn.job.session, ordinal=turn.job.ordinal, items=await self._up_to(turn))

    async def go_on(self, tenant: str, history: History, turn_id: str) -> History:
        """The history for a new turn of a chain. A turn that continues a conversation's turn starts a session of its
        own."""
        if rules.is_conversation(history.session):
            history = replace(history, session=turn_id, ordinal=0)
        await self.remember(tenant, history, head=turn_id)
        return history

    async def enter(
        self, held: AsyncExitStack, tenant: str, conversation_id: str, turn_id: str, *, wait_s: float
    ) -> History:
        """Waits for the conversation's running turn, then locks the conversation until ``held`` closes; returns the
        history.

        A turn that was opened already, because its request was sent twice, gets the same history as the first time.
        """
        await self.require(tenant, conversation_id)
        deadline = self._clock.monotonic() + wait_s
        while True:
            lock = await self.lock(conversation_id, wait_s=deadline - self._clock.monotonic())
            async with AsyncExitStack() as locked:
                await locked.enter_async_context(lock)
                history, running = await self.look(tenant, conversation_id, turn_id)
                if running in ("", turn_id):
                    if not running:
                        await self.remember(tenant, history, head=turn_id)
                    await held.enter_async_context(locked.pop_all())
                    return history
            if self._clock.monotonic() > deadline:
                raise Busy(retry_after_s=1.0)
            await self.lookup.ended(running, wait_s=deadline - self._clock.monotonic())

    async def require(self, tenant: str, conversation_id: str) -> None:
        """Raises unless the conversation is the tenant's, so that no other tenant can take its lock."""
        known = await self._recall(conversation_id)
        if known is None or known.tenant != tenant:
            kept = await self._conversations.get(conversation_id)
            if kept is None or kept.tenant != tenant:
                raise no_conversation(conversation_id)

    async def peek(self, tenant: str, conversation_id: str) -> History:
        """A conversation's items now, without those of a running turn."""
        return (await self.look(tenant, conversation_id))[0]

    async def look(self, tenant: str, conversation_id: str, turn_id: str = "") -> tuple[History, str]:
        """A conversation's history and the id of its running turn, empty if none runs.

        If ``turn_id`` was opened already, returns the history before that turn, and its id.
        """
        if not rules.is_conversation(conversation_id):
            raise no_conversation(conversation_id)
        known = await self._recall(conversation_id)
        if known is not None and known.tenant == tenant and not _tells(known, turn_id):
            history = History(session=conversation_id, ordinal=known.ordinal, items=known.items)
            if not known.head or known.head == turn_id:
                return history, known.head
            turn = await self.lookup.in_log(known.head)
            if turn is not None and turn.job.session != conversation_id:
                turn = None  # another request with the same idempotency key got the id, and is not of this conversation
            if turn is not None and not turn.state.terminal and await self.lookup.is_claimed(turn.id):
                turn = await self.lookup.find(turn.id)
                if turn is not None and not turn.state.terminal:
                    return history, turn.id
            if turn is not None and turn.state is TurnState.COMPLETED:
                return _with(history, turn), ""
            # The turn waits, was never accepted, was forgotten, or ended twice because its log lost the first end: read
            # the store.
        return await self._stored(tenant, conversation_id, turn_id)

    async def remember(self, tenant: str, history: History, *, head: str = "") -> None:
        """Caches a session's history before its newest turn ``head``, or all of it when there is none."""
        known = Remembered(tenant=tenant, head=head, ordinal=history.ordinal, items=history.items)
        body = msgspec.msgpack.encode(known)
        if len(body) > _MAX_CACHED_BYTES:
            await self.drop(history.session)
        else:
            await self._cache.put(_key(history.session), body, ttl_s=self._config.history_cache_s)

    async def drop(self, session: str) -> None:
        """Drops a session from the cache; the next reader reads the store."""
        await self._cache.drop(_key(session))

    async def drop_with_branches(self, session: str) -> None:
        """Drops a session and those that continue it, as far as the store knows them: their histories hold its text."""
        if not session:
            return  # a chat has no session, so no history holds it
        for each in (session, *await self._turns.branches(session)):
            await self.drop(each)

    async def lock(self, conversation_id: str, *, wait_s: float) -> Lock:
        """Acquires the lock on a conversation, to be entered as a context. A failed change drops it from the cache."""
        lock = Lock(self._crowds, conversation_id, partial(self.drop, conversation_id))
        return await lock.take(self._clock, wait_s=wait_s)

    async def _up_to(self, turn: Turn) -> tuple[Item, ...]:
        """The items before an ended turn, and its own."""
        session = turn.job.session
        if not turn.job.previous and not rules.is_conversation(session):
            return rules.said(turn)
        known = await self._recall(session)
        if known is not None and known.head == turn.id:
            return (*known.items, *rules.said(turn))
        await self.lookup.behind_barrier()
        return await self._stored_up_to(turn)

    async def _stored_up_to(self, turn: Turn) -> tuple[Item, ...]:
        items: list[Item] = []
        last: Turn | None = turn
        while last is not None:  # a chain may continue a turn of another chain or of a conversation
            session = last.job.session
            there = await self._turns.entries(session, limit=MAX_STEPS)
            own = rules.entry_of(last)
            if rules.is_conversation(session):
                added, hidden = await self._conversations.entries(session, limit=MAX_STEPS)
                items[:0] = rules.items_in_order([*rules.before([*added, *there], own), own], hidden)
                break
            way = rules.chain({**{each.id: each for each in there}, own.id: own}, own.id)
            items[:0] = [item for each in way for item in each.items]
            first = way[0].previous
            last = await self._turns.get(first) if first else None
        return tuple(items)

    async def _stored(self, tenant: str, conversation_id: str, turn_id: str) -> tuple[History, str]:
        await self.lookup.behind_barrier()
        kept = await self._conversations.get(conversation_id)
        if kept is None or kept.tenant != tenant:
            raise no_conversation(conversation_id)
        turns, running = await self._stored_turns(conversation_id)
        added, hidden = await self._conversations.entries(conversation_id, limit=MAX_STEPS)
        entries = [*added, *turns]
        for turn in turns:
            if turn.id == turn_id:
                entries, running = rules.before(entries, turn), turn_id
        ordinal = max((entry.ordinal for entry in entries), default=0)
        return History(session=conversation_id, ordinal=ordinal, items=rules.items_in_order(entries, hidden)), running

    async def _stored_turns(self, conversation_id: str) -> tuple[list[Entry], str]:
        """A conversation's turns and the id of the running one. A turn that has ended in the log counts as ended."""
        found, running = [], ""
        for entry in await self._turns.entries(conversation_id, limit=MAX_STEPS):
            logged = await self.lookup.in_log(entry.id) if entry.running else None
            seen = entry if logged is None else rules.entry_of(logged)
            running = seen.id if seen.running else running
            found.append(seen)
        return found, running

    async def _recall(self, session: str) -> Remembered | None:
        body = await self._cache.get(_key(session))
        try:
            return None if body is None else msgspec.msgpack.decode(body, type=Remembered)
        except msgspec.DecodeError:
            return None  # written by another release: read the store instead


def _tells(known: Remembered, turn_id: str) -> bool:
    return bool(turn_id) and any(rules.is_of_turn(item, turn_id) for item in known.items)


def _with(history: History, turn: Turn) -> History:
    items = (*history.items, *rules.said(turn))
    return replace(history, items=items, ordinal=max(history.ordinal, turn.job.ordinal))


def _key(session: str) -> str:
    return f"history/{session}"


def no_conversation(conversation_id: str) -> NotFound:
    """The error for a conversation that is unknown, another tenant's or erased; the caller cannot tell which."""
    return NotFound(f"Conversation with id '{conversation_id}' not found.", code="conversation_not_found")

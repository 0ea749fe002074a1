"""What was said before a turn: from quick memory as a rule, else from the store behind a barrier. Never silently less.

Quick memory holds, by session, everything before its newest turn and that turn's id; the newest turn itself is in the
token log. Whatever is not found whole there is read from the store, which a barrier has brought up to date. A
conversation has one turn at a time: whoever opens one holds the conversation's lock until it is accepted.
"""

from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import msgspec

from axon.domain import conversation as rules
from axon.domain.conversation import Entry, History
from axon.domain.item import Item
from axon.domain.turn import Turn, TurnState
from axon.errors import Busy, NotCompleted, NotFound
from axon.ports.live import Cache, Crowds
from axon.ports.store import ConversationStore, SessionTurns
from axon.runtime.clock import Clock
from axon.sessions.config import SessionsConfig
from axon.sessions.lock import Lock
from axon.sessions.lookup import Lookup

MAX_STEPS = 10_000
"""The most turns, and the most items added by hand, that are read of one session."""
_MAX_CACHED_BYTES = 1 << 20


class Remembered(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A session in quick memory."""

    tenant: str
    head: str
    """The newest turn, whose words are not in ``items``; empty when there is none."""
    ordinal: int
    items: tuple[Item, ...]


class Histories:
    """Reads and remembers what sessions hold."""

    def __init__(
        self,
        lookup: Lookup,
        cache: Cache,
        crowds: Crowds,
        turns: SessionTurns,
        conversations: ConversationStore,
        clock: Clock,
        config: SessionsConfig,
    ) -> None:
        self.lookup = lookup
        self._cache, self._crowds = cache, crowds
        self._turns, self._conversations = turns, conversations
        self._clock, self._config = clock, config

    async def of_turn(self, tenant: str, turn_id: str, *, wait_s: float) -> History:
        """Everything up to a turn and its answer; one that still runs is waited for."""
        turn = await self.lookup.find(turn_id, asker=tenant)
        if turn is not None and not turn.state.terminal and turn.tenant == tenant:
            turn = await self.lookup.ended(turn_id, wait_s=wait_s)
        if turn is None or turn.tenant != tenant or not turn.job.session or turn.job.purged:
            raise NotFound(f"There is no turn '{turn_id}'.")
        if turn.state is not TurnState.COMPLETED:
            raise NotCompleted(f"The turn '{turn_id}' did not complete ({turn.state}); nothing can go on from it.")
        return History(session=turn.job.session, ordinal=turn.job.ordinal, items=await self._up_to(turn))

    async def go_on(self, tenant: str, history: History, turn_id: str) -> History:
        """The history as a new turn of a chain has it; what goes on from a conversation's turn is no part of it."""
        if rules.is_conversation(history.session):
            history = replace(history, session=turn_id, ordinal=0)
        await self.remember(tenant, history, head=turn_id)
        return history

    async def enter(
        self, held: AsyncExitStack, tenant: str, conversation_id: str, turn_id: str, *, wait_s: float
    ) -> History:
        """Takes a conversation's place for a new turn, kept until ``held`` ends; waits for the turn before it.

        A turn that has its place already, because its request was sent twice, is told what it was told the first time.
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
        """Raises unless the conversation is the tenant's: nobody else's request gets as far as its lock."""
        known = await self._recall(conversation_id)
        if known is None or known.tenant != tenant:
            kept = await self._conversations.get(conversation_id)
            if kept is None or kept.tenant != tenant:
                raise no_conversation(conversation_id)

    async def peek(self, tenant: str, conversation_id: str) -> History:
        """A conversation's items as they stand; what a running turn says is not among them."""
        return (await self.look(tenant, conversation_id))[0]

    async def look(self, tenant: str, conversation_id: str, turn_id: str = "") -> tuple[History, str]:
        """A conversation's history and the id of the turn that runs in it, if one does.

        With ``turn_id``, if that one has its place already: what was said before it, and its id.
        """
        if not rules.is_conversation(conversation_id):
            raise no_conversation(conversation_id)
        known = await self._recall(conversation_id)
        if known is not None and known.tenant == tenant and not _tells(known, turn_id):
            history = History(session=conversation_id, ordinal=known.ordinal, items=known.items)
            if not known.head or known.head == turn_id:
                return history, known.head
            turn = await self.lookup.in_log(known.head)
            if turn is not None and not turn.state.terminal and await self.lookup.is_claimed(turn.id):
                turn = await self.lookup.find(turn.id)
                if turn is not None and not turn.state.terminal:
                    return history, turn.id
            if turn is not None and turn.state is TurnState.COMPLETED:
                return _with(history, turn), ""
            # Waiting, or never accepted, or forgotten, or ended a second time after its log had lost the first end: the
            # store knows.
        return await self._stored(tenant, conversation_id, turn_id)

    async def remember(self, tenant: str, history: History, *, head: str = "") -> None:
        """Keeps what a session holds before its newest turn, or all of it when there is none."""
        known = Remembered(tenant=tenant, head=head, ordinal=history.ordinal, items=history.items)
        body = msgspec.msgpack.encode(known)
        if len(body) > _MAX_CACHED_BYTES:
            await self.drop(history.session)
        else:
            await self._cache.put(_key(history.session), body, ttl_s=self._config.history_cache_s)

    async def drop(self, session: str) -> None:
        """Whoever asks next reads the store."""
        await self._cache.drop(_key(session))

    async def drop_told(self, session: str) -> None:
        """The same, also of what went on from the session, as far as the store knows: it was told its words."""
        if not session:
            return  # a chat is told to nobody
        for each in (session, *await self._turns.branches(session)):
            await self.drop(each)

    async def lock(self, conversation_id: str, *, wait_s: float) -> Lock:
        """The right to change a conversation, to be entered. When a change fails, quick memory forgets it."""
        lock = Lock(self._crowds, conversation_id, partial(self.drop, conversation_id))
        return await lock.take(self._clock, wait_s=wait_s)

    async def _up_to(self, turn: Turn) -> tuple[Item, ...]:
        """What was said before a turn that has ended, and in it."""
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
        while last is not None:  # a chain may begin in the middle of another one, or of a conversation
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
        """A conversation's turns, and the one that runs; an end that the log has been told counts as told."""
        found, running = [], ""
        for entry in await self._turns.entries(conversation_id, limit=MAX_STEPS):
            told = await self.lookup.in_log(entry.id) if entry.running else None
            seen = entry if told is None else rules.entry_of(told)
            running = seen.id if seen.running else running
            found.append(seen)
        return found, running

    async def _recall(self, session: str) -> Remembered | None:
        body = await self._cache.get(_key(session))
        try:
            return None if body is None else msgspec.msgpack.decode(body, type=Remembered)
        except msgspec.DecodeError:
            return None  # of another release: the store has it as well


def _tells(known: Remembered, turn_id: str) -> bool:
    return bool(turn_id) and any(item.id == rules.answer_id(turn_id) for item in known.items)


def _with(history: History, turn: Turn) -> History:
    items = (*history.items, *rules.said(turn))
    return replace(history, items=items, ordinal=max(history.ordinal, turn.job.ordinal))


def _key(session: str) -> str:
    return f"history/{session}"


def no_conversation(conversation_id: str) -> NotFound:
    """Unknown, foreign or erased: told apart by nobody."""
    return NotFound(f"Conversation with id '{conversation_id}' not found.", code="conversation_not_found")
